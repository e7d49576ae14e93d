import { existsSync } from "node:fs";
import { join } from "node:path";
import type { PendingRemoval } from "../../../../contracts/driver.js";
import { removeTrees } from "../../../machine/remove-tree.js";
import { gitError } from "../host.js";
import {
  checkedOutAt,
  readUntrustedText,
  removeStaleRefLock,
  repositoryExists,
  resolveCommit,
  runRepositoryGit,
  withRepositoryLock,
  worktreeNames,
} from "../repository.js";
import { unmovedMark } from "./branch-mark.js";
import { removeEntry } from "./worktree-entry.js";

/** Removes a worktree, whole or half-made. Idempotent. Returns when its entry is gone; its files may still be vanishing. */
export async function removeWorktree(target: {
  repo: string;
  path: string;
  name: string;
  beside?: readonly string[];
}): Promise<PendingRemoval> {
  const gone = removeTrees([target.path, ...(target.beside ?? [])]);
  gone.catch(() => undefined);
  const forget = (): Promise<void> => removeEntry(target.repo, target.name, target.path);
  if (await repositoryExists(target.repo)) await withRepositoryLock(target.repo, forget);
  return { gone };
}

/** Removes a branch that was created for a sandbox, unless somebody has moved it or checked it out since. Idempotent. */
export async function removeBranch(target: { repo: string; name: string; sha: string; mark: string }): Promise<void> {
  if (!(await repositoryExists(target.repo))) return;
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
  const heads = [repo, ...(await worktreeNames(repo)).map((name) => join(repo, "worktrees", name))];
  return heads.some((dir) => readUntrustedText(join(dir, "HEAD")).trimEnd() === `ref: refs/heads/${branch}`);
}
