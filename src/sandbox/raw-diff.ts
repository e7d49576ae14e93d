import type { Changes } from "../../contracts/types.js";

const STATUS: Readonly<Record<string, Changes["files"][number]["status"]>> = {
  A: "added",
  D: "deleted",
  R: "renamed",
};

/** Reads `git diff --raw -z`: `:<modes> <ids> <status>` and one path, or two of a rename, each ended by a zero byte. */
export function parseRawDiff(raw: string): Changes["files"] {
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
