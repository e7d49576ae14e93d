import { createHash } from "node:crypto";
import type { Repository } from "../repository.js";

/** A git object. */
export interface GitObject {
  readonly id: string;
  /** With its header, not compressed. */
  readonly bytes: Buffer;
}

/** An entry of a tree object. The name is one character per byte. */
export interface TreeEntry {
  /** As in the object: `40000` for a directory. */
  readonly mode: string;
  readonly name: string;
  readonly id: string;
}

/** The mode of a directory. */
export const DIRECTORY = "40000";
const PLAIN_MODES: ReadonlySet<string> = new Set([DIRECTORY, "100644", "100755", "120000", "160000"]);

/** Makes an object from its content. */
export function gitObject(
  type: "blob" | "tree" | "commit",
  content: Uint8Array,
  format: Repository["objectFormat"],
): GitObject {
  const bytes = Buffer.concat([Buffer.from(`${type} ${content.length}\0`), content]);
  return { id: createHash(format).update(bytes).digest("hex"), bytes };
}

/** Makes a tree object from entries in any order. */
export function treeObject(entries: readonly TreeEntry[], format: Repository["objectFormat"]): GitObject {
  const sorted = [...entries].sort((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1));
  const parts = sorted.flatMap(({ mode, name, id }) => [
    Buffer.from(`${mode} ${name}\0`, "latin1"),
    Buffer.from(id, "hex"),
  ]);
  return gitObject("tree", Buffer.concat(parts), format);
}

/** Parses a tree object's content; undefined when git would have written it differently. */
export function parseTree(content: Buffer, format: Repository["objectFormat"]): TreeEntry[] | undefined {
  const length = format === "sha1" ? 20 : 32;
  const entries: TreeEntry[] = [];
  for (let at = 0; at < content.length; ) {
    const space = content.indexOf(0x20, at);
    const end = content.indexOf(0, space);
    if (space === -1 || end === -1 || end + 1 + length > content.length) return undefined;
    const mode = content.toString("latin1", at, space);
    const name = content.toString("latin1", space + 1, end);
    if (!PLAIN_MODES.has(mode) || name === "") return undefined;
    const entry = { mode, name, id: content.toString("hex", end + 1, end + 1 + length) };
    const before = entries.at(-1);
    if (before !== undefined && sortKey(before) >= sortKey(entry)) return undefined;
    entries.push(entry);
    at = end + 1 + length;
  }
  return entries;
}

/** Git compares the names of directories as if a slash followed. */
function sortKey({ mode, name }: TreeEntry): string {
  return mode === DIRECTORY ? `${name}/` : name;
}
