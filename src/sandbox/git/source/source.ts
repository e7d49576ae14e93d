import type { Resource } from "../../../../contracts/backend.js";
import { SandboxError } from "../../../../contracts/errors.js";
import { assertBranchName } from "../../../util/git/branch-name.js";
import type { SandboxOptions } from "../../types.js";
import { findRepository, type Repository, type RepositoryTrust, resolveCommit } from "../repository.js";
import { openClone } from "./clone-cache.js";
import { REMOTE_HEAD } from "./fetch-clone.js";
import { parseSourceUrl } from "./source-url.js";

/** Finds the source that `repo` names: on this machine, or as a clone in the cache, which is brought up to date. */
export async function findSource(
  repo: string,
  opts: Pick<SandboxOptions, "githubToken" | "signal"> & RepositoryTrust,
): Promise<Repository> {
  const { githubToken, signal } = opts;
  const elsewhere = parseSourceUrl(repo, { hasToken: githubToken !== undefined });
  if (elsewhere === undefined) return await findRepository(repo, opts);
  const dir = await openClone(elsewhere, { token: githubToken, signal });
  return { ...(await findRepository(dir, { gitFilters: opts.gitFilters })), url: elsewhere.url };
}

/** The commit to start from: that of the given branch if it exists, otherwise HEAD of the source. */
export async function findStart({ gitDir, topLevel, url }: Repository, branch: string | undefined): Promise<string> {
  if (branch !== undefined) assertBranchName(branch);
  // The local branches of a clone are leftovers of sandboxes.
  const heads = url === undefined ? "refs/heads/" : "refs/remotes/origin/";
  const own = branch === undefined ? undefined : await resolveCommit(gitDir, `${heads}${branch}`);
  const sha = own ?? (await resolveCommit(gitDir, url === undefined ? "HEAD" : REMOTE_HEAD));
  if (sha !== undefined) return sha;
  const repo = url ?? topLevel ?? gitDir;
  throw new SandboxError("invalid_argument", `Invalid repo "${repo}" — it has no commit yet`, { hint: "git commit" });
}

/** The resources that a sandbox's record names while it uses a source. */
export function resourcesOfSource({ gitDir, url }: Repository): Resource[] {
  return url === undefined ? [] : [{ kind: "clone", path: gitDir }];
}
