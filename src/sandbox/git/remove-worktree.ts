import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Vanishing } from "../dismantle.js";
import { removeTrees } from "../remove-tree.js";
import { gitError, runHostGit } from "./host-git.js";
import { inRepository, resolveCommit } from "./repository.js";
import { withRepositoryLock } from "./repository-lock.js";
import { removeStaleRefLock } from "./stale-ref-lock.js";
import { checkedOutAt } from "./worktree.js";
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
}): Promise<Vanishing> {
  const gone = removeTrees([target.path, ...(target.beside ?? [])]);
  gone.catch(() => undefined);
  const forget = (): Promise<void> => removeEntry(target.repo, target.name, target.path);
  if (await isGitDirectory(target.repo)) await withRepositoryLock(target.repo, forget);
  return { gone };
}

/** Deletes a branch that we created and nobody has moved or checked out since. Any other one stays. Idempotent. */
export async function removeBranch(target: { repo: string; name: string; sha: string; mark: string }): Promise<void> {
  if (!(await isGitDirectory(target.repo))) return;
  await withRepositoryLock(target.repo, async () => {
    const ref = `refs/heads/${target.name}`;
    await removeStaleRefLock(target.repo, ref);
    if ((await readStory(target.repo, ref)) !== target.mark) return;
    if (await isCheckedOut(target.repo, target.name)) return;
    const remove = ["update-ref", "--no-deref", "-d", ref, target.sha];
    const answer = await runHostGit(remove, inRepository(target.repo));
    if (answer.exitCode === 0 || (await resolveCommit(target.repo, ref)) !== target.sha) return;
    throw gitError(remove, answer);
  });
}

/** What the reflog of a branch tells; git is asked only where it is not a plain file. */
async function readStory(repo: string, ref: string): Promise<string | undefined> {
  if (existsSync(join(repo, "reftable"))) {
    const story = await runHostGit(["reflog", "show", "--format=%gs", ref, "--"], inRepository(repo));
    return story.stdout.trimEnd();
  }
  const log = await readFile(join(repo, "logs", ref), "utf8").catch(() => "");
  return /^[^\t\n]*\t([^\n]*)\n$/.exec(log)?.[1];
}

async function isCheckedOut(repo: string, branch: string): Promise<boolean> {
  if (existsSync(join(repo, "reftable"))) return (await checkedOutAt(repo, branch)) !== undefined;
  const heads = [repo, ...(await entryNames(repo)).map((name) => join(repo, "worktrees", name))];
  const texts = await Promise.all(heads.map((dir) => readFile(join(dir, "HEAD"), "utf8").catch(() => "")));
  return texts.some((text) => text.trimEnd() === `ref: refs/heads/${branch}`);
}
