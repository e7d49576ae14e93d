import { rename, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { removeOwnTree } from "../../../machine/remove-tree.js";
import { readUntrustedText, worktreeNames } from "../repository.js";
import { hiddenEntry } from "./register-worktree.js";

/** The name under which git will register a worktree: the first free one of `work`, `work1`, `work2`, … */
export async function freeEntryName(gitDir: string, wanted: string): Promise<string> {
  const taken = await worktreeNames(gitDir);
  for (let n = 0; ; n++) {
    const name = n === 0 ? wanted : `${wanted}${n}`;
    if (!taken.includes(name)) return name;
  }
}

/**
 * Removes what git knows about one worktree, also when git was killed while it wrote that down.
 *
 * `git worktree prune` never removes an entry that is still `locked initializing`, and would also take the user's entries
 * whose directories are away, as on a disk that is not mounted.
 */
export async function removeEntry(gitDir: string, name: string, path: string): Promise<void> {
  for (const entry of await worktreeNames(gitDir)) {
    const place = join(gitDir, "worktrees", entry);
    const link = readUntrustedText(join(place, "gitdir"));
    const isHalfMade = entry === name && link.trim() === "";
    if (isHalfMade || link.trimEnd() === join(path, ".git")) await removeWhole(gitDir, entry);
  }
  await removeOwnTree(hiddenEntry(gitDir, name));
  // As git does after the last one. Fails while there are others, which is right.
  await rmdir(join(gitDir, "worktrees")).catch(() => undefined);
}

/** Takes an entry out of git's sight at once: one that lacks a file would be in the way of everybody's git. */
async function removeWhole(gitDir: string, name: string): Promise<void> {
  const hidden = hiddenEntry(gitDir, name);
  await removeOwnTree(hidden);
  await rename(join(gitDir, "worktrees", name), hidden);
  await removeOwnTree(hidden);
}
