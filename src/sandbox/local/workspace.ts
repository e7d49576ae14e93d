import { randomBytes } from "node:crypto";
import { mkdir, realpath } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SandboxError } from "../errors.js";
import { runtimeDir } from "../home.js";
import { addResource } from "../ledger.js";
import type { SandboxOptions } from "../types.js";
import { checkBaseDir, protectGit } from "./base-dir.js";
import type { JailBind } from "./jail.js";
import { createPrivateGit } from "./private-git.js";
import { findRepository, type Repository, resolveCommit } from "./repository.js";
import { addWorktree } from "./worktree.js";

/** Where the files of a sandbox are and what the inside sees of them; enough to open it again. */
export interface Workspace {
  kind: "worktree" | "base-dir" | "empty";
  workDir: string;
  /** What is bound beside the work directory itself. */
  trees: JailBind[];
  /** The commit that the files started from, in the user's repository. */
  base?: {
    repository: Repository;
    sha: string;
    branch: string;
    /** The worktree's own git directory, below the repository's. */
    worktree?: string;
  };
}

/** A workspace that is decided but not made: everything that can be refused has been. */
export interface PlannedWorkspace {
  workDir: string;
  make(id: string, signal?: AbortSignal): Promise<Workspace>;
}

/** A name that no other sandbox has; also the end of its directory's. */
export function newSandboxId(): string {
  return randomBytes(8).toString("hex");
}

/** Checks what the sandbox shall work on, without making anything. */
export async function planWorkspace(id: string, opts: SandboxOptions): Promise<PlannedWorkspace> {
  if (opts.baseDir !== undefined) {
    const workDir = checkBaseDir(opts.baseDir);
    return { workDir, make: async () => ({ kind: "base-dir", workDir, trees: protectGit(workDir) }) };
  }
  const workDir = await newWorkDir(id);
  if (opts.repo === undefined) return { workDir, make: () => makeEmpty(id, workDir) };
  if (/^[a-z][a-z0-9+.-]*::?\/\/|^[^/]+@[^/]+:|^[a-z]+::/i.test(opts.repo)) {
    throw new SandboxError("unsupported", `The local backend takes no URL as repo yet: "${opts.repo}"`, {
      hint: "clone it first and name the directory",
    });
  }
  const repository = await findRepository(opts.repo);
  if ((await resolveCommit(repository.gitDir, "HEAD")) === undefined && opts.branch === undefined) {
    throw new SandboxError("invalid_argument", `Invalid repo "${opts.repo}" — it has no commit yet`, {
      hint: "git commit",
    });
  }
  const branch = opts.branch ?? `glovebox/${id}`;
  return { workDir, make: (owner, signal) => makeWorktree(owner, { repository, branch }, workDir, signal) };
}

/** Checks where a copy of another sandbox shall be. One of a directory of the user's is a directory of its own. */
export async function planFork(id: string, origin: Workspace, isConfined: boolean): Promise<PlannedWorkspace> {
  const workDir = await newWorkDir(id);
  const { base } = origin;
  if (base === undefined) return { workDir, make: () => makeEmpty(id, workDir) };
  const { repository, branch, sha } = base;
  return {
    workDir,
    async make(owner, signal) {
      // Without isolation, what was committed inside is on the branch itself.
      const tip = isConfined ? undefined : await resolveCommit(repository.gitDir, `refs/heads/${branch}`);
      const made = await makeWorktree(owner, { repository, branch, forkAt: tip ?? sha }, workDir, signal);
      return made.base === undefined ? made : { ...made, base: { ...made.base, sha } };
    },
  };
}

async function newWorkDir(id: string): Promise<string> {
  return join(await realpath(tmpdir()), `harness-${id}`);
}

async function makeEmpty(id: string, workDir: string): Promise<Workspace> {
  await addResource(id, { kind: "directory", path: workDir });
  await mkdir(workDir, { mode: 0o700 });
  return { kind: "empty", workDir, trees: [] };
}

async function makeWorktree(
  id: string,
  from: { repository: Repository; branch: string; forkAt?: string },
  workDir: string,
  signal: AbortSignal | undefined,
): Promise<Workspace> {
  const { repository } = from;
  const worktree = await addWorktree({ ...from, path: workDir, record: id, signal });
  const trees = await createPrivateGit({ repository, worktree, workDir, dir: join(runtimeDir(id), "git") });
  const { baseSha: sha, branch, gitDir } = worktree;
  return { kind: "worktree", workDir, trees, base: { repository, sha, branch, worktree: gitDir } };
}
