import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { abandonedLocks, type LockOptions, withLock } from "../../../machine/lock.js";
import { wasGitKilled } from "../host.js";
import { removeStaleRefLock } from "./stale-ref-lock.js";

const PREFIX = "repo:";
/** Milliseconds that the clock of the file system can be behind. */
const TICK = 10;

/**
 * Runs something while no other Glovebox process changes a repository.
 *
 * When the last holder of the lock died, or its git was killed, that git may have left `packed-refs.lock`, and nobody can delete a branch
 * any more. Removes it if it was made while our lock was held and no git is at work there.
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

/** Takes the repository locks of dead processes, and so removes what their gits may have left. Skips a lock that it can't get. */
export async function sweepRepositoryLocks(): Promise<void> {
  const names = abandonedLocks().filter((name) => name.startsWith(PREFIX));
  for (const name of names) {
    await withRepositoryLock(name.slice(PREFIX.length), async () => undefined).catch(() => undefined);
  }
}

async function removePackedRefsLock(gitDir: string, since: number): Promise<void> {
  const lock = await lstat(join(gitDir, "packed-refs.lock")).catch(() => undefined);
  if (lock !== undefined && lock.ctimeMs >= since) await removeStaleRefLock(gitDir, "packed-refs");
}
