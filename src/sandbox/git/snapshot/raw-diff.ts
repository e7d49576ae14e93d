import type { Changes } from "../../../../contracts/types.js";

const STATUS: Readonly<Record<string, Changes["files"][number]["status"]>> = {
  A: "added",
  D: "deleted",
  R: "renamed",
};

/** Options that make git print all paths and the patch at once, for `parseChanges`. */
export const RAW_AND_PATCH: readonly string[] = [
  ...["-M", "--no-ext-diff", "--no-textconv", "--no-color"],
  ...["--raw", "--patch", "--binary", "-z"],
];

/** Parses git's output with `RAW_AND_PATCH`: the paths, an empty entry, and the patch as without `-z`. */
export function parseChanges(text: string): Changes {
  const border = text.indexOf("\0\0");
  if (border === -1) return { patch: "", files: [] };
  return { patch: text.slice(border + 2), files: parseRawDiff(text.slice(0, border + 1)) };
}

/** Parses `git diff --raw -z`: `:<modes> <ids> <status>` and one path, or two for a rename, each ended by a zero byte. */
function parseRawDiff(raw: string): Changes["files"] {
  const files: Changes["files"] = [];
  const parts = raw.split("\0");
  for (let at = 0; at + 1 < parts.length; ) {
    const letter = (parts[at] ?? "").split(" ").at(-1)?.[0] ?? "";
    const isRename = letter === "R";
    files.push({ path: parts[at + (isRename ? 2 : 1)] ?? "", status: STATUS[letter] ?? "modified" });
    at += isRename ? 3 : 2;
  }
  return files;
}
