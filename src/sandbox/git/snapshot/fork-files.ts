import { failpoint } from "../../../machine/failpoint.js";
import { commitOptionsOf } from "../commit.js";
import { type LiveTree, setSandboxBranch, setSandboxHead, type TreeLook } from "../live-tree.js";
import { createSnapshot } from "./create-snapshot.js";
import { removeRef } from "./remove-snapshot.js";
import { replicateTree } from "./replicate.js";
import { holdCommit } from "./restore-snapshot.js";
import { recordSnapshots } from "./save-snapshot.js";

/**
 * Gives new sandboxes the files of another, all of them as they are at one moment, and the commits made inside.
 *
 * They were made as any other: a fork of a repository has the files of the base already, so that little is to be copied, and its index
 * belongs to what was not. Nothing was ever run in them.
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
    // Files need no warning: all of them are copied, wherever they would be in a snapshot.
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

/** An inside that lies about it loses its commits in the forks, and nothing else. */
async function mayHaveCommits({ sandboxGit, base }: LiveTree): Promise<boolean> {
  return sandboxGit !== undefined && (await sandboxGit.headCommit?.()) !== base?.sha;
}

async function copyFiles({ base, signal }: LiveTree, look: TreeLook, fork: LiveTree): Promise<void> {
  const spared = base === undefined ? undefined : ".git";
  await replicateTree(look.root.source, fork.look().root.source, { spared, signal });
}

/** For files that are not the sandbox's own: the inside may not read all of them, and of a copy it could. */
async function carryFiles(_: LiveTree, look: TreeLook, { driver }: LiveTree): Promise<void> {
  await driver.importTree(look.tar(), driver.workDir);
}

/** Gives a fork whose layers were copied the branch of its own. */
export async function nameForkedBranch(fork: LiveTree): Promise<void> {
  if (fork.base !== undefined) await setSandboxBranch(fork, fork.base.branch);
}
