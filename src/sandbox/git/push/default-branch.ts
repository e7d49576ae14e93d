import { existsSync } from "node:fs";
import { join } from "node:path";
import { SandboxError } from "../../../../contracts/errors.js";
import { isBranchName } from "../../../util/git/branch-name.js";
import { type LiveTree, needsRepository, scratchPath } from "../live-tree.js";
import { runRemoteGit, withAskpass } from "../remote.js";
import { readHeadFile, runRepositoryGit, withScratchRepository } from "../repository.js";
import { findPushTarget } from "./push-branch.js";

const TIMEOUT = 30_000;

/** The default branch of the remote: as the source remembers it, otherwise as the remote says, otherwise the current branch. */
export async function findDefaultBranch(tree: LiveTree, token: string | undefined): Promise<string> {
  const { base } = tree;
  if (base === undefined) throw needsRepository("defaultBranch");
  const { gitDir } = base.repository;
  const remembered = (await symbolicRef(gitDir, "refs/remotes/origin/HEAD"))?.replace(/^origin\//, "");
  if (isBranchName(remembered)) return remembered;
  const answered = await askRemote(tree, token).catch(() => undefined);
  if (isBranchName(answered)) return answered;
  const current = await currentBranch(gitDir);
  if (isBranchName(current)) return current;
  throw new SandboxError("not_found", `The repository ${gitDir} does not name its default branch`, {
    hint: "git remote set-head origin --auto",
  });
}

async function currentBranch(gitDir: string): Promise<string | undefined> {
  if (existsSync(join(gitDir, "reftable"))) return await symbolicRef(gitDir, "HEAD");
  return readHeadFile(gitDir).ref?.replace(/^refs\/heads\//, "");
}

async function symbolicRef(gitDir: string, name: string): Promise<string | undefined> {
  const answer = await runRepositoryGit(["symbolic-ref", "--quiet", "--short", name], gitDir);
  return answer.exitCode === 0 ? answer.stdout.trim() : undefined;
}

async function askRemote(tree: LiveTree, token = ""): Promise<string | undefined> {
  const { base } = tree;
  if (base === undefined) return undefined;
  const target = await findPushTarget(base.repository.gitDir);
  return await withScratchRepository(scratchPath(tree.id, "remote"), base.repository, (own) =>
    withAskpass(scratchPath(tree.id, "askpass"), target, token, async (asking) => {
      const store = { ...own, signal: AbortSignal.any([tree.signal, AbortSignal.timeout(TIMEOUT)]) };
      const answer = await runRemoteGit(["ls-remote", "--symref", "--", target.url, "HEAD"], target, store, asking);
      return /^ref: refs\/heads\/(\S+)\tHEAD$/m.exec(answer.stdout)?.[1];
    }),
  );
}
