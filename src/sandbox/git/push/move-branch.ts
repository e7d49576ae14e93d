import { join } from "node:path";
import { SandboxError } from "../../../../contracts/errors.js";
import type { LiveTree } from "../live-tree.js";
import { checkedOutAt, repositoryGit, resolveCommit, runRepositoryGit, withRepositoryLock } from "../repository.js";

/** Refuses a branch that is checked out elsewhere than in this sandbox. */
export async function assertFree(gitDir: string, branch: string, own: string | undefined): Promise<void> {
  const place = await checkedOutAt(gitDir, branch);
  if (place === undefined || place === own) return;
  throw new SandboxError("conflict", `Branch "${branch}" is checked out at ${place}`, {
    retryable: false,
    hint: "Push to another branch",
  });
}

/**
 * Moves the local branch to what was pushed: forward, or from `before`, which we pushed ourselves. The sandbox's own branch is created again if it
 * is gone; any other is only moved. A branch that somebody else moved stays, with a warning.
 */
export async function moveBranch(
  tree: LiveTree,
  branch: string,
  sha: string,
  before: string | undefined,
): Promise<void> {
  const { base } = tree;
  if (base === undefined) return;
  const { gitDir } = base.repository;
  const isOwn = branch === base.branch;
  await withRepositoryLock(gitDir, async () => {
    const ref = `refs/heads/${branch}`;
    const old = await resolveCommit(gitDir, ref);
    if (old === sha || (old === undefined && !isOwn)) return;
    const forward = old === undefined || (await isAncestor(gitDir, old, sha));
    if (!forward && old !== before) {
      tree.warn(`Branch "${branch}" was pushed; the local branch stays, because somebody else moved it meanwhile`);
      return;
    }
    const move = ["update-ref", "--no-deref", "--create-reflog", "-m", `glovebox: pushed from ${tree.id}`];
    await repositoryGit([...move, ref, sha, old ?? ""], gitDir);
    if (!isOwn || base.worktree === undefined) return;
    // The index only: the files are the sandbox's.
    await repositoryGit(["read-tree", "-i", "-m", sha], gitDir, { index: join(base.worktree, "index") });
  });
}

async function isAncestor(gitDir: string, older: string, newer: string): Promise<boolean> {
  return (await runRepositoryGit(["merge-base", "--is-ancestor", older, newer], gitDir)).exitCode === 0;
}
