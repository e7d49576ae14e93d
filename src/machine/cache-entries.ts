import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";

/** A cache entry, which can be made again at any time. */
export interface CacheEntry {
  readonly path: string;
  /** When it was last used, in milliseconds since 1970. */
  readonly usedAt: number;
  readonly bytes: number;
  /** Removes it; returns false if it is in use. */
  remove(): Promise<boolean>;
}

/** Removes unused entries, least recently used first, until the rest fits. Returns the paths of the removed ones. */
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

/** Bytes of all files below a directory. Files that disappear meanwhile count as 0. */
export async function sizeOf(dir: string): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(dir, { withFileTypes: true, recursive: true }).catch(() => [])) {
    if (entry.isFile()) bytes += (await stat(join(entry.parentPath, entry.name)).catch(() => ({ size: 0 }))).size;
  }
  return bytes;
}
