import { SandboxError } from "../../../../contracts/errors.js";
import { failpoint } from "../../../machine/failpoint.js";
import { assertBranchName } from "../../../util/git/branch-name.js";
import type { Driver, PushOptions } from "../../types.js";
import { commitOptionsOf } from "../commit.js";
import { type HostGitOptions, type HostGitResult, runHostGit } from "../host.js";
import { advanceSandboxHead, type LiveTree, needsRepository, scratchPath } from "../live-tree.js";
import { assertServer, complaintOf, parsePushUrl, type RemoteTarget, runRemoteGit, withAskpass } from "../remote.js";
import { readRepositorySettings, repositoryGit, withScratchRepository } from "../repository.js";
import { createSnapshot, holdCommit, recordSnapshots, removeRef } from "../snapshot.js";
import { assertFree, moveBranch } from "./move-branch.js";

/** Whether the remote took it, and if not, why. */
type Outcome = Awaited<ReturnType<NonNullable<Driver["git"]>["pushBranch"]>>;

/** What this process pushed from each sandbox, by branch: the only commits at the remote that a push may replace. */
const pushes = new WeakMap<LiveTree, Map<string, string>>();

/** Commits the files and pushes them to `origin`. A refusal by the remote is a result, no error; then the local branch stays. */
export async function pushBranch(
  tree: LiveTree,
  branch: string,
  token: string,
  { message, server }: PushOptions = {},
): Promise<Outcome> {
  const { base } = tree;
  if (base === undefined) throw needsRepository("pushBranch");
  assertBranchName(branch);
  if (!/^[\x21-\x7e]{1,4096}$/.test(token)) {
    throw new SandboxError("invalid_argument", "Invalid token — it holds a blank, a line break or another character");
  }
  const { gitDir } = base.repository;
  const target = await findPushTarget(gitDir);
  assertServer(target.url, server);
  await assertFree(gitDir, branch, base.worktree && tree.driver.hostDir);
  await recordSnapshots(tree);
  const pack = await commitOptionsOf(tree, { withCommits: true });
  const snapshot = await createSnapshot({ ...pack, message, isDurable: true, nestedNote: "not pushed" });
  try {
    for (const warning of snapshot.warnings) tree.warn(warning);
    const work = await withoutEmptyCommit(gitDir, snapshot.commit);
    await failpoint("push.committed");
    const before = pushes.get(tree)?.get(branch);
    const { sha = work.sha, ...result } = await push(tree, target, { branch, sha: work.sha, before, token });
    if (!result.pushed) return result;
    pushes.set(tree, new Map([...(pushes.get(tree) ?? []), [branch, sha]]));
    await failpoint("push.accepted");
    await holdCommit(tree, gitDir, sha);
    await moveBranch(tree, branch, sha, before);
    await failpoint("push.moved");
    if (work.parent !== undefined) await advanceSandboxHead(tree, work.parent, sha, "glovebox: pushed");
    return result;
  } finally {
    await removeRef(gitDir, snapshot.ref, snapshot.commit);
  }
}

/** The `origin` of the source, as its own configuration file names it; no other setting counts. */
export async function findPushTarget(gitDir: string): Promise<RemoteTarget> {
  const { originUrl: url = "" } = await readRepositorySettings(gitDir);
  if (url !== "") return parsePushUrl(url);
  throw new SandboxError("invalid_argument", `The repository ${gitDir} has no remote "origin"`, {
    hint: "git remote add origin https://<host>/<repository>.git",
  });
}

/** The commit with its parent, or only the parent if the commit changes nothing. */
async function withoutEmptyCommit(gitDir: string, commit: string): Promise<{ sha: string; parent?: string }> {
  const query = ["rev-parse", `${commit}^`, `${commit}^{tree}`, `${commit}^^{tree}`];
  const [parent = "", tree, before] = (await repositoryGit(query, gitDir)).trimEnd().split("\n");
  return tree === before ? { sha: parent } : { sha: commit, parent };
}

/** Pushes. Also returns the commit at the remote, if it is another with the same files and history. */
async function push(
  tree: LiveTree,
  target: RemoteTarget,
  what: { branch: string; sha: string; before: string | undefined; token: string },
): Promise<Outcome & { sha?: string }> {
  const { branch, sha, before, token } = what;
  const { base } = tree;
  if (base === undefined) throw needsRepository("pushBranch");
  const ref = `refs/heads/${branch}`;
  return await withScratchRepository(scratchPath(tree.id, "push"), base.repository, (own) =>
    withAskpass(scratchPath(tree.id, "askpass"), target, token, async (asking) => {
      const store = { ...own, signal: tree.signal };
      const list = await runRemoteGit(["ls-remote", "--refs", "--", target.url, ref], target, store, asking);
      if (list.exitCode !== 0) return { pushed: false, error: complaintOf(list, token) };
      const old = /^([0-9a-f]{40,64})\t/.exec(list.stdout)?.[1] ?? "";
      if (old === sha) return { pushed: true };
      if (old !== "" && old !== before && !(await isAncestor(store, old, sha))) {
        // For example after a push whose success nobody got to know.
        if (await isSameWork(store, old, sha)) return { pushed: true, sha: old };
        return { pushed: false, error: `${branch} at ${target.url} has commits that this sandbox does not have` };
      }
      const options = ["--porcelain", "--no-verify", "--no-follow-tags", `--force-with-lease=${ref}:${old}`];
      const answer = await runRemoteGit(["push", ...options, "--", target.url, `${sha}:${ref}`], target, store, asking);
      return answer.exitCode === 0 ? { pushed: true } : { pushed: false, error: complaintOf(answer, token) };
    }),
  );
}

async function isAncestor(store: HostGitOptions, older: string, newer: string): Promise<boolean> {
  return (await runHostGit(["merge-base", "--is-ancestor", older, newer], store)).exitCode === 0;
}

/** Whether two commits have the same files and the same history. */
async function isSameWork(store: HostGitOptions, one: string, other: string): Promise<boolean> {
  const look = (sha: string): Promise<HostGitResult> => runHostGit(["log", "-1", "--format=%T %P", sha, "--"], store);
  const [a, b] = await Promise.all([look(one), look(other)]);
  return a.exitCode === 0 && b.exitCode === 0 && a.stdout === b.stdout;
}
