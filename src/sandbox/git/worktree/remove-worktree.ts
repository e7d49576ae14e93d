import { existsSync } from "node:fs";
import { join } from "node:path";
import type { PendingRemoval } from "../../../../contracts/driver.js";
import { removeTrees } from "../../../machine/remove-tree.js";
import { checkedOutAt } from "../repository/checked-out.js";
import { gitError } from "../repository/host-git.js";
import { resolveCommit } from "../repository/repository.js";
import { runRepositoryGit } from "../repository/repository-git.js";
import { withRepositoryLock } from "../repository/repository-lock.js";
import { removeStaleRefLock } from "../repository/stale-ref-lock.js";
import { readUntrustedText } from "../repository/untrusted-file.js";
import { unmovedMark } from "./branch-story.js";
import { entryNames, isGitDirectory, removeEntry } from "./worktree-entry.js";

/**
 * Removes a worktree, whole or half-made: its directory and what git knows about it, nothing else. Idempotent. When git knows nothing of it
 * any more, its files may still be going.
 */
export async function removeWorktree(target: {
  repo: string;
  path: string;
  name: string;
  beside?: readonly string[];
}): Promise<PendingRemoval> {
  const gone = removeTrees([target.path, ...(target.beside ?? [])]);
  gone.catch(() => undefined);
  const forget = (): Promise<void> => removeEntry(target.repo, target.name, target.path);
  if (await isGitDirectory(target.repo)) await withRepositoryLock(target.repo, forget);
  return { gone };
}

/**
 * Deletes a branch that we created and nobody has moved or checked out since. Any other one stays: a sandbox that has it
 * checked out took it over. Idempotent.
 */
export async function removeBranch(target: { repo: string; name: string; sha: string; mark: string }): Promise<void> {
  if (!(await isGitDirectory(target.repo))) return;
  await withRepositoryLock(target.repo, async () => {
    const ref = `refs/heads/${target.name}`;
    await removeStaleRefLock(target.repo, ref);
    if ((await unmovedMark(target.repo, ref)) !== target.mark) return;
    if (await isCheckedOut(target.repo, target.name)) return;
    const remove = ["update-ref", "--no-deref", "-d", ref, target.sha];
    const answer = await runRepositoryGit(remove, target.repo);
    if (answer.exitCode === 0 || (await resolveCommit(target.repo, ref)) !== target.sha) return;
    throw gitError(remove, answer);
  });
}

async function isCheckedOut(repo: string, branch: string): Promise<boolean> {
  if (existsSync(join(repo, "reftable"))) return (await checkedOutAt(repo, branch)) !== undefined;
  const heads = [repo, ...(await entryNames(repo)).map((name) => join(repo, "worktrees", name))];
  return heads.some((dir) => readUntrustedText(join(dir, "HEAD")).trimEnd() === `ref: refs/heads/${branch}`);
}
