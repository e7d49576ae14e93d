import { gunzipSync } from "node:zlib";

const BLOCK = 512;

/** Reads the archive that the SDK sends: regular files with short names. */
export function readArchive(body: Buffer): { name: string; mode: number; content: Buffer }[] {
  const tar = gunzipSync(body);
  const entries: { name: string; mode: number; content: Buffer }[] = [];
  for (let at = 0; at + BLOCK <= tar.length && tar[at] !== 0; ) {
    const text = (from: number, length: number): string =>
      tar.toString("utf8", at + from, at + from + length).replace(/\0.*$/s, "");
    const size = Number.parseInt(text(124, 12), 8);
    const prefix = text(345, 155);
    const name = prefix === "" ? text(0, 100) : `${prefix}/${text(0, 100)}`;
    if (["0", ""].includes(text(156, 1))) {
      entries.push({
        name,
        mode: Number.parseInt(text(100, 8), 8),
        content: tar.subarray(at + BLOCK, at + BLOCK + size),
      });
    }
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
  }
  return entries;
}
