import { failpoint } from "../../../machine/failpoint.js";
import { commitOptionsOf } from "../commit.js";
import { type LiveTree, setSandboxBranch, setSandboxHead, type TreeLook } from "../live-tree.js";
import { createSnapshot } from "./create-snapshot.js";
import { removeRef } from "./remove-snapshot.js";
import { replicateTree } from "./replicate.js";
import { holdCommit } from "./restore-snapshot.js";
import { recordSnapshots } from "./save-snapshot.js";

/**
 * Gives new sandboxes the files of another as they are at one moment, and its commits.
 *
 * The forks were opened like any other sandbox: with a source they have the files of the base already, so there is little to copy, and their
 * index fits what was not copied. Nothing has run in them yet.
 */
export async function fillForks(
  tree: LiveTree,
  forks: readonly LiveTree[],
  opts: { areForeign: boolean },
): Promise<void> {
  const look = tree.look();
  const fill = async (): Promise<void> => {
    for (const fork of forks) {
      tree.signal.throwIfAborted();
      await (opts.areForeign ? carryFiles : copyFiles)(tree, look, fork);
    }
    await failpoint("fork.taken");
  };
  const isFilled = await look.frozen(async () => {
    if (await mayHaveCommits(tree)) return false;
    await fill();
    return true;
  });
  if (isFilled) return;
  await recordSnapshots(tree);
  const pack = await commitOptionsOf(tree, { withCommits: true, look, isExact: true });
  const { gitDir, ref, commit, head, warnings } = await createSnapshot({ ...pack, beside: fill });
  try {
    // Only about commits: all files were copied, also those that a snapshot leaves out.
    if (head === undefined && warnings[0] !== undefined) tree.warn(warnings[0]);
    for (const fork of forks) {
      if (head === undefined || fork.base === undefined) continue;
      await holdCommit(fork, gitDir, head.sha);
      await setSandboxHead(fork, { sha: head.sha, branch: fork.base.branch });
    }
  } finally {
    await removeRef(gitDir, ref, commit);
  }
}

/** A sandbox that lies about it loses its commits in the forks, and nothing else. */
async function mayHaveCommits({ sandboxGit, base }: LiveTree): Promise<boolean> {
  return sandboxGit !== undefined && (await sandboxGit.headCommit?.()) !== base?.sha;
}

async function copyFiles({ base, signal }: LiveTree, look: TreeLook, fork: LiveTree): Promise<void> {
  const spared = base === undefined ? undefined : ".git";
  await replicateTree(look.root.source, fork.look().root.source, { spared, signal });
}

/** For files that are not the sandbox's own: it may not be allowed to read all of them, but could read a copy. */
async function carryFiles(_: LiveTree, look: TreeLook, { driver }: LiveTree): Promise<void> {
  await driver.importTree(look.tar(), driver.workDir);
}

/** Gives a fork whose layers were copied its own branch. */
export async function nameForkedBranch(fork: LiveTree): Promise<void> {
  if (fork.base !== undefined) await setSandboxBranch(fork, fork.base.branch);
}
