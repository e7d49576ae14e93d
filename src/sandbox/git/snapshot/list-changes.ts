import { join } from "node:path";
import type { Changes } from "../../../../contracts/types.js";
import { commitOptionsOf, importPack, withTreeCommit } from "../commit.js";
import { writeLooseObjects } from "../fast-commit.js";
import { gitIn, type HostGitOptions, hostGit } from "../host.js";
import { type LiveTree, needsRepository, scratchPath } from "../live-tree.js";
import { withScratchRepository } from "../repository.js";
import { warningsOf } from "./create-snapshot.js";
import { parseChanges, RAW_AND_PATCH } from "./raw-diff.js";

const MAX_OUTPUT = 256 * 1024 * 1024;

/**
 * What differs from the base, without ignored files.
 *
 * Commits the files and compares the commit's checked objects in a scratch repository, so that no attribute or setting of the sandbox has an
 * effect. Nothing gets into the source.
 */
export async function listChanges(tree: LiveTree): Promise<Changes> {
  const { base } = tree;
  if (base === undefined) throw needsRepository("changes");
  const compared = async (
    commit: string,
    fill: (store: HostGitOptions & { gitDir: string }) => Promise<void>,
  ): Promise<Changes> =>
    await withScratchRepository(scratchPath(tree.id, "changes"), base.repository, async (store) => {
      await fill(store);
      return await compare({ ...store, maxOutput: MAX_OUTPUT, signal: tree.signal }, base.sha, commit);
    });
  return await withTreeCommit(
    await commitOptionsOf(tree, { withCommits: false }),
    async (made, pack) => {
      for (const warning of warningsOf(made, "not in the changes; a snapshot saves it")) tree.warn(warning);
      return await compared(made.commit, (store) => importPack(gitIn(store), pack));
    },
    async ({ commit, isUnchanged, objects }) => {
      if (isUnchanged) return { patch: "", files: [] };
      return await compared(commit, ({ gitDir }) => writeLooseObjects(join(gitDir, "objects"), objects));
    },
  );
}

async function compare(store: HostGitOptions, from: string, to: string): Promise<Changes> {
  return parseChanges(await hostGit(["diff-tree", "-r", "--no-commit-id", ...RAW_AND_PATCH, from, to, "--"], store));
}
