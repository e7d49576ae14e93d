import { withLock } from "../lock.js";
import { removeTree } from "../remove-tree.js";
import { hostGit } from "./host-git.js";
import { inRepository, resolveCommit } from "./repository.js";
import { removeStaleRefLock } from "./stale-ref-lock.js";
import { checkedOutAt, repositoryLock } from "./worktree.js";
import { isGitDirectory, removeEntry } from "./worktree-entry.js";

/** Removes a worktree, whole or half-made: its directory and what git knows about it, nothing else. Idempotent. */
export async function removeWorktree(target: { repo: string; path: string; name: string }): Promise<void> {
  await removeTree(target.path);
  if (!(await isGitDirectory(target.repo))) return;
  await withLock(repositoryLock(target.repo), () => removeEntry(target.repo, target.name, target.path));
}

/** Deletes a branch that we created and nobody has moved or checked out since. Any other one stays. Idempotent. */
export async function removeBranch(target: { repo: string; name: string; sha: string; mark: string }): Promise<void> {
  if (!(await isGitDirectory(target.repo))) return;
  await withLock(repositoryLock(target.repo), async () => {
    await removeStaleRefLock(target.repo, `refs/heads/${target.name}`);
    if (!(await isUntouched(target))) return;
    if ((await checkedOutAt(target.repo, target.name)) !== undefined) return;
    const ref = `refs/heads/${target.name}`;
    await hostGit(["update-ref", "--no-deref", "-d", ref, target.sha], inRepository(target.repo));
  });
}

async function isUntouched({ repo, name, sha, mark }: Parameters<typeof removeBranch>[0]): Promise<boolean> {
  const ref = `refs/heads/${name}`;
  if ((await resolveCommit(repo, ref)) !== sha) return false;
  const story = await hostGit(["reflog", "show", "--format=%gs", ref, "--"], inRepository(repo));
  return story.trimEnd() === mark;
}
