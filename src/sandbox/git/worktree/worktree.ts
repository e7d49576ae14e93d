import { existsSync } from "node:fs";
import { lstat, mkdir, realpath, rename, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Resource } from "../../../../contracts/backend.js";
import { SandboxError } from "../../../../contracts/errors.js";
import { addResource } from "../../../ledger.js";
import { syncPath } from "../../../machine/atomic-file.js";
import { failpoint } from "../../../machine/failpoint.js";
import { runtimeDir } from "../../../machine/home.js";
import { assertBranchName } from "../../../util/git/branch-name.js";
import { gitError } from "../host.js";
import {
  checkedOutAt,
  copyIfThere,
  type Repository,
  repositoryGit,
  resolveCommit,
  runRepositoryGit,
  withRepositoryLock,
} from "../repository.js";
import { writeFiles } from "../source.js";
import { branchMark, unmovedMark } from "./branch-mark.js";
import { registerWorktree } from "./register-worktree.js";
import { freeEntryName } from "./worktree-entry.js";

/** A registered worktree of a source. */
export interface Worktree {
  readonly path: string;
  /** Its entry, below the git directory of the source. */
  readonly gitDir: string;
  readonly branch: string;
  /** The commit that it starts from. */
  readonly baseSha: string;
}

/** What `addWorktree` needs. */
export interface AddWorktree {
  repository: Repository;
  /** Created from HEAD if it doesn't exist. `conflict` if it is checked out elsewhere. */
  branch: string;
  /** Create the branch at this commit; it must not exist. */
  newAt?: string | undefined;
  /** Start the branch at this commit, wherever it was before; only for a clone. */
  resetTo?: string | undefined;
  /** Start at this commit instead, on a new branch `<branch>-fork-<n>`. */
  forkAt?: string | undefined;
  /** Must not exist. Its parent must. */
  path: string;
  /** The id of the ledger record that will name the worktree, and the branch if it is created. */
  record: string;
  /** Called when the first file is about to be written. What doesn't need the files can start too. */
  onFilling?: (() => void) | undefined;
  signal?: AbortSignal | undefined;
}

/** Makes a registered worktree with its files. */
export async function addWorktree(opts: AddWorktree): Promise<Worktree> {
  const { worktree, filled } = await startWorktree(opts);
  await filled;
  return worktree;
}

/**
 * Makes a registered worktree, and starts to write its files, which takes most of the time. Always wait for `filled`, also when something
 * else fails.
 *
 * One process at a time registers, so that a free name and a free branch stay free.
 */
export async function startWorktree(opts: AddWorktree): Promise<{ worktree: Worktree; filled: Promise<void> }> {
  const { repository, path, record, signal } = opts;
  assertBranchName(opts.branch);
  const target = await freePath(path);
  const { gitDir: shared } = repository;
  const index = join(runtimeDir(record), "index.new");
  let files: Promise<void> | undefined;
  // Git would let every user of the machine read it, however private the repository is.
  const makeTarget = (): Promise<unknown> => mkdir(target, { mode: 0o700 });
  const fill = (sha: string): void => {
    files = writeFiles(repository, sha, { tree: target, index }, signal);
    files.catch(() => undefined);
    opts.onFilling?.();
  };
  const register = async (): Promise<Worktree> => {
    const branch = opts.forkAt === undefined ? opts.branch : await freeForkName(shared, opts.branch);
    assertBranchName(branch);
    const name = await freeEntryName(shared, basename(target));
    const entry = { kind: "worktree", repo: shared, path: target, name };
    if (opts.resetTo !== undefined) await removeUnusedBranch(shared, branch);
    const newAt = opts.newAt ?? opts.resetTo ?? opts.forkAt;
    const used = newAt === undefined ? await useBranch(shared, branch) : undefined;
    // Where refs are no files git has to register the worktree, and it accepts only an empty directory.
    const fillEarly = async (sha: string): Promise<void> => {
      await makeTarget();
      if (!existsSync(join(shared, "reftable"))) fill(sha);
    };
    if (used !== undefined) {
      await addResource(record, ...(await leftBranch(shared, branch, used)), entry);
      await fillEarly(used);
    }
    const baseSha =
      used ?? (await createBranch(shared, branch, { record, at: newAt, next: entry, onRecorded: fillEarly }));
    await failpoint("create.branched");
    const gitDir = await registerWorktree({ shared, name, path: target, branch, signal });
    return { path: target, gitDir, branch, baseSha };
  };
  try {
    const worktree = await withRepositoryLock(shared, register, { signal });
    await failpoint("create.registered");
    if (files === undefined) fill(worktree.baseSha);
    const filled = Promise.resolve(files).then(() => moveFile(index, join(worktree.gitDir, "index")));
    filled.catch(() => undefined);
    return { worktree, filled };
  } catch (error) {
    await Promise.resolve(files).catch(() => undefined);
    throw error;
  }
}

async function moveFile(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EXDEV") throw error;
    await copyIfThere(from, to);
    await unlink(from);
  }
}

/** The commit of a branch that can be checked out; undefined when there is no such branch. */
async function useBranch(shared: string, branch: string): Promise<string | undefined> {
  const sha = await resolveCommit(shared, `refs/heads/${branch}`);
  if (sha === undefined) return undefined;
  const place = await checkedOutAt(shared, branch);
  if (place === undefined) return sha;
  throw new SandboxError("conflict", `Branch "${branch}" is already checked out at ${place}`, {
    retryable: false,
    hint: "Name another branch. If that directory is gone: git worktree prune",
  });
}

/** A branch that another sandbox created, did not move, and left behind because it is in use here. Whoever uses it last removes it. */
async function leftBranch(shared: string, branch: string, sha: string): Promise<Resource[]> {
  const mark = await unmovedMark(shared, `refs/heads/${branch}`);
  return mark === undefined ? [] : [{ kind: "branch", repo: shared, name: branch, sha, mark }];
}

/** Removes a branch that is not checked out. Its commits were pushed: nothing else moves a branch of a clone. */
async function removeUnusedBranch(shared: string, branch: string): Promise<void> {
  const sha = await useBranch(shared, branch);
  if (sha !== undefined) await repositoryGit(["update-ref", "-d", `refs/heads/${branch}`, sha], shared);
}

/** The first of `<branch>-fork-1`, `-2`, … that is no branch. */
async function freeForkName(shared: string, branch: string): Promise<string> {
  const list = await repositoryGit(["for-each-ref", "--format=%(refname)", "refs/heads/"], shared);
  const taken = new Set(list.split("\n"));
  for (let n = 1; ; n++) {
    const name = `${branch}-fork-${n}`;
    if (!taken.has(`refs/heads/${name}`)) return name;
  }
}

/** Creates a branch, after adding it and `next` to the ledger; `onRecorded` may then start to make `next`. */
async function createBranch(
  shared: string,
  branch: string,
  opts: {
    record: string;
    at: string | undefined;
    next: Resource;
    onRecorded: (sha: string) => Promise<void>;
  },
): Promise<string> {
  const { record, at, next, onRecorded } = opts;
  const sha = at ?? (await resolveCommit(shared, "HEAD"));
  if (sha === undefined) {
    throw new SandboxError("invalid_argument", `Invalid repo "${shared}" — it has no commit to start from`, {
      hint: "Make a first commit: git commit --allow-empty -m start",
    });
  }
  const mark = branchMark(record);
  await addResource(record, { kind: "branch", repo: shared, name: branch, sha, mark }, next);
  await onRecorded(sha);
  const create = ["update-ref", "--create-reflog", "-m", mark, `refs/heads/${branch}`, sha, ""];
  const answer = await runRepositoryGit(create, shared);
  if (answer.exitCode === 0) {
    // The reflog marks the branch as ours. Git never syncs its file; in another storage it is as durable as the branch.
    const log = join(shared, "logs", "refs", "heads", branch);
    if (existsSync(log)) await syncPath(log);
    return sha;
  }
  const { code } = gitError(create, answer);
  if (code !== "conflict") throw gitError(create, answer);
  if (/reference broken/.test(answer.stderr)) {
    throw new SandboxError("invalid_argument", `Branch "${branch}" cannot be read: ${answer.stderr.trim()}`, {
      hint: `The file refs/heads/${branch} of the repository is damaged. Remove it, or name another branch`,
    });
  }
  if (/Unable to create '.*\.lock': File exists/.test(answer.stderr)) {
    throw new SandboxError("conflict", `Branch "${branch}" cannot be created: ${answer.stderr.trim()}`, {
      hint: "Another git may be at work. If not, remove the lock file in the message",
    });
  }
  throw new SandboxError("conflict", `Branch "${branch}" cannot be created: ${answer.stderr.trim()}`, {
    retryable: false,
    hint: "A branch cannot lie below another one, as x/y below x. Name another branch.",
  });
}

async function freePath(path: string): Promise<string> {
  const target = join(await realpath(dirname(path)), basename(path));
  const present = await lstat(target).catch(() => undefined);
  if (present === undefined) return target;
  throw new SandboxError("conflict", `${target} already exists`, { retryable: false });
}
