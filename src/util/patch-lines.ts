/** How many lines one file of a patch gained and lost. */
export interface FileLines {
  added: number;
  removed: number;
  /** True when the file is no text; it has no lines then. */
  isBinary?: true;
}

const HUNK = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/;

/** Counts the lines of each file of a patch as git writes it. What stands within a hunk is never taken for a header. */
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
