import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { abandonedLocks, type LockOptions, withLock } from "../../../machine/lock.js";
import { wasGitKilled } from "../host.js";
import { removeStaleRefLock } from "./stale-ref-lock.js";

const PREFIX = "repo:";
/** The clock that files are dated by can be as much behind. */
const TICK = 10;

/**
 * Runs something while no other process of ours adds to or takes from a repository.
 *
 * When one that held the lock has died, or a git of its was killed, that git may have left the lock of all packed refs, without which
 * nobody can delete a branch any more. It is taken away if it was made while ours was held, and no git is at work there.
 */
export async function withRepositoryLock<T>(
  gitDir: string,
  work: () => Promise<T>,
  opts: LockOptions = {},
): Promise<T> {
  return await withLock(
    `${PREFIX}${gitDir}`,
    async (heldBefore) => {
      if (heldBefore !== undefined) await removePackedRefsLock(gitDir, heldBefore);
      const since = Date.now();
      try {
        return await work();
      } catch (error) {
        if (wasGitKilled(error)) await removePackedRefsLock(gitDir, since - TICK).catch(() => undefined);
        throw error;
      }
    },
    opts,
  );
}

/** Takes the locks that dead processes hold, and so mends what their gits may have left; one that cannot be had stays. */
export async function sweepRepositoryLocks(): Promise<void> {
  const names = (await abandonedLocks()).filter((name) => name.startsWith(PREFIX));
  for (const name of names) {
    await withRepositoryLock(name.slice(PREFIX.length), async () => undefined).catch(() => undefined);
  }
}

async function removePackedRefsLock(gitDir: string, since: number): Promise<void> {
  const lock = await lstat(join(gitDir, "packed-refs.lock")).catch(() => undefined);
  if (lock !== undefined && lock.ctimeMs >= since) await removeStaleRefLock(gitDir, "packed-refs");
}
