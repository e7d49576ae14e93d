import { createReadStream } from "node:fs";
import { rm } from "node:fs/promises";
import { failpoint } from "../failpoint.js";
import { writeArchive } from "./archive.js";
import { setInsideBranch, setInsideHead } from "./inside-git.js";
import type { InsideHead } from "./jailed-commit.js";
import { jailedPackOf, type LiveTree, scratchPath } from "./live-tree.js";
import { deleteRef } from "./remove-snapshot.js";
import { holdCommit } from "./restore-snapshot.js";
import { answerForSnapshots } from "./save-snapshot.js";
import { createSnapshot } from "./snapshot.js";

/** A sandbox's files at one moment, to be copied from. */
export interface ForkSource {
  /** Archive of all files, ignored ones too. */
  archive: string;
  /** The last commit made inside and the repository that it can be read from. */
  commits?: { gitDir: string; head: InsideHead };
}

/** Takes a sandbox's files out, and the commits made inside, for as long as something copies from them. */
export async function withForkSource<T>(tree: LiveTree, use: (source: ForkSource) => Promise<T>): Promise<T> {
  const archive = scratchPath(tree.id, "fork");
  const look = tree.look();
  const takeFiles = async (): Promise<void> => {
    await rm(archive, { force: true });
    const isFile = (name: string): boolean => tree.base === undefined || !/^\.git(\/|$)/.test(name);
    await writeArchive(look.tar(), archive, isFile);
    await failpoint("fork.taken");
  };
  try {
    if (tree.inside === undefined) {
      await look.frozen(takeFiles);
      return await use({ archive });
    }
    await answerForSnapshots(tree);
    const pack = await jailedPackOf(tree, { withCommits: true, look });
    const { gitDir, ref, commit, head, warnings } = await createSnapshot({ ...pack, beside: takeFiles });
    try {
      // Files need no warning: all of them are copied, wherever they would be in a snapshot.
      if (head === undefined && warnings[0] !== undefined) tree.warn(warnings[0]);
      return await use({ archive, ...(head && { commits: { gitDir, head } }) });
    } finally {
      await deleteRef(gitDir, ref, commit);
    }
  } finally {
    await rm(archive, { force: true });
  }
}

/** Gives a new sandbox, which has no files yet, those that were taken out of another. */
export async function fillFork(fork: LiveTree, { archive, commits }: ForkSource): Promise<void> {
  const { base, driver } = fork;
  await driver.importTree(createReadStream(archive), driver.workDir);
  if (base === undefined) return;
  if (commits !== undefined) await holdCommit(fork, commits.gitDir, commits.head.sha);
  await setInsideHead(fork, commits && { sha: commits.head.sha, branch: base.branch });
}

/** Gives a fork whose layers were copied the branch of its own. */
export async function nameForkedBranch(fork: LiveTree): Promise<void> {
  if (fork.base !== undefined) await setInsideBranch(fork, fork.base.branch);
}
