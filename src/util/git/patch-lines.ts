/** How many lines a patch adds to a file and removes from it. */
export interface FileLines {
  added: number;
  removed: number;
  /** The file is binary, so it has no lines. */
  isBinary?: true;
}

const HUNK = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/;

/** Counts the lines of each file in a git patch. Never reads a line within a hunk as a header. */
export function countLines(patch: string): FileLines[] {
  const files: FileLines[] = [];
  let [before, after] = [0, 0];
  for (const line of patch.split("\n")) {
    const file = files.at(-1);
    if (before > 0 || after > 0) {
      if (line.startsWith("\\")) continue;
      if (file !== undefined && line.startsWith("+")) file.added += 1;
      if (file !== undefined && line.startsWith("-")) file.removed += 1;
      if (!line.startsWith("+")) before -= 1;
      if (!line.startsWith("-")) after -= 1;
    } else if (line.startsWith("diff --git ")) {
      files.push({ added: 0, removed: 0 });
    } else if (file !== undefined && /^Binary files .* differ$|^GIT binary patch$/.test(line)) {
      file.isBinary = true;
    } else {
      const found = HUNK.exec(line);
      if (found !== null) [before, after] = [Number(found[1] ?? 1), Number(found[2] ?? 1)];
    }
  }
  return files;
}
