import { existsSync } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { SandboxError } from "../../../contracts/errors.js";
import { userHome } from "../../machine/user-home.js";
import {
  checkedOutAt,
  enclosingRepository,
  findRepository,
  findSource,
  findStart,
  type Repository,
  readRepositorySettings,
  repositoryGit,
  resolveCommit,
  runRepositoryGit,
  uncommittedFiles,
} from "../../sandbox/host.js";
import { backendsWithRepositoryHere, usesRepositoryHere } from "../backend-facts.js";
import { type GitHubHost, repositoryAt } from "../github.js";

/** The repository that a run works on. */
export interface SourceRepository {
  /** What the sandbox is opened on: a path, or a URL where the backend clones by itself. */
  readonly repo: string;
  /** The top level of the user's repository, where there is one on this machine. */
  readonly topLevel?: string;
  /** The git directory on this machine that has the objects. */
  readonly gitDir?: string;
  /** The commit to start from; unknown where the backend clones by itself. */
  readonly baseCommit?: string;
  /** Where `origin` is, as the repository says. */
  readonly remoteUrl?: string;
  /** What the user should know and is no failure. */
  readonly warnings: readonly string[];
}

/** What finding a repository needs. */
export interface SourceOptions {
  readonly repo: string;
  readonly ref?: string | undefined;
  /** The branch that was asked for; one that exists is where the run starts. */
  readonly branch?: string | undefined;
  readonly backend: string;
  readonly host: GitHubHost;
  readonly token?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Finds out what a run works on, before anything is made. */
export async function openSource(opts: SourceOptions): Promise<SourceRepository> {
  const path = await existingDirectory(opts.repo);
  if (path !== undefined) return await describeDirectory(path, opts);
  const url = toUrl(opts.repo, opts.host);
  if (!(await usesRepositoryHere(opts.backend))) {
    if (opts.ref !== undefined) throw await unsupportedRef(opts.backend, opts.ref);
    return { repo: opts.repo, remoteUrl: url, warnings: [] };
  }
  const { token, signal } = opts;
  const clone = await findSource(url, { ...(token && { githubToken: token }), ...(signal && { signal }) });
  const { gitDir } = clone;
  await assertNotCheckedOut(gitDir, opts.branch);
  if (opts.ref === undefined) {
    return { repo: url, gitDir, baseCommit: await findStart(clone, opts.branch), remoteUrl: url, warnings: [] };
  }
  // A clone starts where the remote does; for a run that starts elsewhere, it is used as it is.
  const baseCommit = await resolveRef({ gitDir }, opts.ref, opts.repo);
  return { repo: gitDir, gitDir, baseCommit, remoteUrl: url, warnings: [] };
}

/** Where a run of earlier is pushed now: to the `origin` of its repository, which may have been added since. */
export async function remoteNow(plan: Pick<SourceRepository, "repo" | "gitDir" | "remoteUrl">): Promise<string> {
  const { originUrl } = plan.gitDir === undefined ? {} : await readRepositorySettings(plan.gitDir);
  return originUrl ?? plan.remoteUrl ?? plan.repo;
}

async function describeDirectory(path: string, opts: SourceOptions): Promise<SourceRepository> {
  if (opts.ref !== undefined && !(await usesRepositoryHere(opts.backend))) {
    throw await unsupportedRef(opts.backend, opts.ref);
  }
  const repository = await findEnclosing(path, opts.repo);
  const { gitDir, topLevel } = repository;
  const own = opts.branch === undefined ? undefined : await resolveCommit(gitDir, `refs/heads/${opts.branch}`);
  if (own !== undefined) await assertNotCheckedOut(gitDir, opts.branch);
  if (own !== undefined && opts.ref !== undefined) throw startsTwice(opts.branch ?? "", opts.ref);
  const baseCommit = own ?? (await resolveRef(repository, opts.ref ?? "HEAD", opts.repo));
  const { originUrl: remoteUrl } = await readRepositorySettings(gitDir);
  const warnings = await warningsOf(repository);
  return {
    repo: topLevel ?? gitDir,
    ...(topLevel && { topLevel }),
    gitDir,
    baseCommit,
    ...(remoteUrl && { remoteUrl }),
    warnings,
  };
}

/** The repository that a directory is in. */
async function findEnclosing(path: string, repo: string): Promise<Repository> {
  try {
    return await findRepository(enclosingRepository(path));
  } catch (error) {
    if (!(error instanceof SandboxError && /not a git repository$/.test(error.message))) throw error;
    throw new SandboxError("invalid_argument", `Invalid repo "${repo}" — not a git repository`, {
      hint: `cd ${path} && git init && git add -A && git commit -m start`,
    });
  }
}

async function warningsOf(repository: Repository): Promise<string[]> {
  const warnings: string[] = [];
  if (repository.topLevel !== undefined) {
    // Another run may be making the folder of runs just now.
    const isOurs = (path: string): boolean => path.startsWith(".glovebox/");
    const changed = (await uncommittedFiles(repository, { withUntracked: true })).filter(
      (path) => !isOurs(path),
    ).length;
    if (changed > 0) {
      const files = changed === 1 ? "1 file that is" : `${changed} files that are`;
      warnings.push(
        `the working tree has ${files} not committed: the run starts from the commit and does not see them`,
      );
    }
  }
  if (existsSync(join(repository.gitDir, "shallow")))
    warnings.push("the repository is shallow: the run sees the commits that are there, no older ones");
  return warnings;
}

async function resolveRef(
  { gitDir, ownGitDir }: Pick<Repository, "gitDir" | "ownGitDir">,
  ref: string,
  repo: string,
): Promise<string> {
  for (const name of [ref, `refs/remotes/origin/${ref}`]) {
    const commit = await resolveCommit(gitDir, name, ownGitDir);
    if (commit !== undefined) return commit;
  }
  if (ref !== "HEAD") {
    throw new SandboxError("invalid_argument", `Invalid ref "${ref}" — ${repo} has no such branch, tag or commit`, {
      hint: "git fetch may get it",
    });
  }
  throw new SandboxError("invalid_argument", `Invalid repo "${repo}" — it has no commit yet`, {
    hint: 'git add -A && git commit -m "start"',
  });
}

/** A run on a checked-out branch would change files that somebody works on, or make them out of date. */
async function assertNotCheckedOut(gitDir: string, branch: string | undefined): Promise<void> {
  const place = branch === undefined ? undefined : await checkedOutAt(gitDir, branch);
  if (place === undefined) return;
  throw new SandboxError(
    "invalid_argument",
    `Branch "${branch}" is checked out at ${place}, so no run can work on it`,
    {
      hint: "leave branch out, or name another one. If that directory is gone: git worktree prune",
    },
  );
}

function startsTwice(branch: string, ref: string): SandboxError {
  return new SandboxError("invalid_argument", `Branch "${branch}" exists, so the run cannot start from ref "${ref}"`, {
    hint: "leave ref out, or name a new branch",
  });
}

/** The directory that a reference names; undefined when it can only be a repository elsewhere. */
async function existingDirectory(repo: string): Promise<string | undefined> {
  const path = resolve(repo.replace(/^~(?=\/|$)/, userHome()));
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory() === true) return await realpath(path);
  if (found !== undefined) throw new SandboxError("invalid_argument", `Invalid repo "${repo}" — not a directory`);
  if (/^(\.|\/|~)/.test(repo) || !repo.includes("/")) {
    throw new SandboxError("not_found", `Invalid repo "${repo}" — no such directory`, {
      hint: "a path, owner/name or the https URL of a repository",
    });
  }
  return undefined;
}

function toUrl(repo: string, host: GitHubHost): string {
  const found = repositoryAt(host, repo);
  if (found !== undefined) return `${host.serverUrl}/${found.owner}/${found.name}.git`;
  if (/^https?:\/\//i.test(repo)) return repo;
  throw new SandboxError("invalid_argument", `Invalid repo ${JSON.stringify(repo.slice(0, 200))}`, {
    hint: "a path, owner/name or the https URL of a repository",
  });
}

async function unsupportedRef(backend: string, ref: string): Promise<SandboxError> {
  const others = await backendsWithRepositoryHere();
  return new SandboxError("unsupported", `The ${backend} backend clones by itself and cannot start from ref "${ref}"`, {
    hint: `leave --ref out, or use the ${others.join(" or ")} backend`,
  });
}

/** Makes the branch of a run where it starts; false when there is one already. */
export async function createBranchAt(gitDir: string, branch: string, commit: string): Promise<boolean> {
  const args = ["update-ref", "--create-reflog", "-m", "glovebox: created for a run", `refs/heads/${branch}`, commit];
  const { exitCode } = await runRepositoryGit([...args, "0".repeat(commit.length)], gitDir);
  return exitCode === 0;
}

/** Deletes the branch of a run if nothing was committed to it. */
export async function deleteUnmovedBranch(gitDir: string, branch: string, commit: string): Promise<void> {
  await runRepositoryGit(["update-ref", "-d", `refs/heads/${branch}`, commit], gitDir);
}

/** The tree of a commit in a repository of this machine. */
export async function treeOfCommit(gitDir: string, commit: string): Promise<string> {
  return (await repositoryGit(["rev-parse", "--verify", `${commit}^{tree}`], gitDir)).trim();
}

/** Where the runs on a repository are kept: at its top level, else below this directory. */
export function runsFolder(source: Pick<SourceRepository, "topLevel">): string {
  return join(topOf(source), ".glovebox", "runs");
}

/** Others may write below it, so no link there is followed. */
export function topOf(source: Pick<SourceRepository, "topLevel">): string {
  return source.topLevel ?? process.cwd();
}
