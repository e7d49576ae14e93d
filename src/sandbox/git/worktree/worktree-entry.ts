import { rename, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { removeOwnTree } from "../../../machine/remove-tree.js";
import { readUntrustedText, worktreeNames } from "../repository.js";
import { hiddenEntry } from "./register-worktree.js";

/** The name that git would give a worktree: the first free one of `work`, `work1`, `work2`, … */
export async function freeEntryName(gitDir: string, wanted: string): Promise<string> {
  const taken = await worktreeNames(gitDir);
  for (let n = 0; ; n++) {
    const name = n === 0 ? wanted : `${wanted}${n}`;
    if (!taken.includes(name)) return name;
  }
}

/**
 * Removes the entry of one worktree, also a half-written one.
 *
 * `git worktree prune` never removes an entry that is `locked initializing`, and would remove entries of the user whose directories are
 * away, for example on a disk that is not mounted.
 */
export async function removeEntry(gitDir: string, name: string, path: string): Promise<void> {
  for (const entry of await worktreeNames(gitDir)) {
    const place = join(gitDir, "worktrees", entry);
    const link = readUntrustedText(join(place, "gitdir"));
    const isHalfMade = entry === name && link.trim() === "";
    if (isHalfMade || link.trimEnd() === join(path, ".git")) await removeWhole(gitDir, entry);
  }
  await removeOwnTree(hiddenEntry(gitDir, name));
  // As git does after the last one. Fails while there are others.
  await rmdir(join(gitDir, "worktrees")).catch(() => undefined);
}

/** Hides an entry before it is removed: one that lacks a file makes every git in the repository fail. */
async function removeWhole(gitDir: string, name: string): Promise<void> {
  const hidden = hiddenEntry(gitDir, name);
  await removeOwnTree(hidden);
  await rename(join(gitDir, "worktrees", name), hidden);
  await removeOwnTree(hidden);
}
