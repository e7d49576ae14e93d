import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";

/** Something in a cache that can be made again. */
export interface CacheEntry {
  readonly path: string;
  /** When it was last used, in milliseconds since 1970. */
  readonly usedAt: number;
  readonly bytes: number;
  /** Takes it away; gives false when it is in use. */
  remove(): Promise<boolean>;
}

/** Removes what is not in use, the least recently used first, until the rest fits. Gives the paths of what is gone. */
export async function trimEntries(entries: readonly CacheEntry[], maxBytes: number): Promise<string[]> {
  const oldestFirst = [...entries].sort((a, b) => a.usedAt - b.usedAt);
  let total = entries.reduce((sum, { bytes }) => sum + bytes, 0);
  const removed: string[] = [];
  for (const { path, bytes, remove } of oldestFirst) {
    if (total <= maxBytes) break;
    if (!(await remove())) continue;
    total -= bytes;
    removed.push(path);
  }
  return removed;
}

/** Bytes of all files below a directory. What vanishes meanwhile has none. */
export async function sizeOf(dir: string): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(dir, { withFileTypes: true, recursive: true }).catch(() => [])) {
    if (entry.isFile()) bytes += (await stat(join(entry.parentPath, entry.name)).catch(() => ({ size: 0 }))).size;
  }
  return bytes;
}
