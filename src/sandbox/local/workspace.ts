import { randomBytes } from "node:crypto";
import { mkdir, realpath } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { SandboxError } from "../errors.js";
import { failpoint } from "../failpoint.js";
import { runtimeDir } from "../home.js";
import { addResource } from "../ledger.js";
import type { Resource } from "../record.js";
import type { SandboxOptions } from "../types.js";
import { baseDirOf, openBase } from "./base-cache.js";
import { checkBaseDir, protectGit } from "./base-dir.js";
import { checkOut } from "./checkout.js";
import type { JailBind } from "./jail.js";
import { makeLayer } from "./layer.js";
import { INSIDE_GIT, privateGitBinds, privateGitDir, writeBranch, writePrivateGit } from "./private-git.js";
import { findRepository, type Repository, resolveCommit } from "./repository.js";
import { addWorktree, branchMark } from "./worktree.js";

/** Where the files of a sandbox are and what the inside sees of them; enough to open it again. */
export interface Workspace {
  kind: "worktree" | "overlay" | "copy" | "base-dir" | "empty";
  workDir: string;
  /** What the work directory is made of. */
  root: JailBind;
  /** What is bound beside the work directory itself. */
  trees: JailBind[];
  /** The commit that the files started from, in the user's repository. */
  base?: {
    repository: Repository;
    sha: string;
    branch: string;
    /** An index that belongs to the files of the commit, which only the host writes. */
    index: string;
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
    return {
      workDir,
      make: async () => ({ kind: "base-dir", workDir, root: directory(workDir), trees: protectGit(workDir) }),
    };
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
  const plan = { id, repository, branch, workDir };
  if (opts.workspace === "overlay") return { workDir, make: () => makeOverlay(plan) };
  if (opts.workspace === "copy") return { workDir, make: (_, signal) => makeCopy(plan, signal) };
  return { workDir, make: (_, signal) => makeWorktree(plan, signal) };
}

/** A workspace of a repository, decided. */
interface Plan {
  id: string;
  repository: Repository;
  branch: string;
  workDir: string;
  /** The commit to start from, when it is not the branch's own or HEAD's. */
  at?: string;
  /** Start at this commit on a new branch that is called after `branch`. */
  forkAt?: string;
}

/** Checks where a copy of another sandbox shall be. One of a directory of the user's is a directory of its own. */
export async function planFork(
  id: string,
  n: number,
  origin: Workspace,
  isConfined: boolean,
): Promise<PlannedWorkspace> {
  const workDir = await newWorkDir(id);
  const { base, kind } = origin;
  if (base === undefined) return { workDir, make: () => makeEmpty(id, workDir) };
  const { repository, branch, sha } = base;
  const plan = { id, repository, branch: `${branch}-fork-${n}`, workDir, at: sha };
  if (kind === "overlay") return { workDir, make: () => makeOverlay(plan, origin) };
  if (kind === "copy") return { workDir, make: (_, signal) => makeCopy(plan, signal) };
  return {
    workDir,
    async make(_, signal) {
      // Without isolation, what was committed inside is on the branch itself.
      const tip = isConfined ? undefined : await resolveCommit(repository.gitDir, `refs/heads/${branch}`);
      const made = await makeWorktree({ ...plan, branch, forkAt: tip ?? sha }, signal);
      return made.base === undefined ? made : { ...made, base: { ...made.base, sha } };
    },
  };
}

/** What a workspace consists of outside its runtime directory, last first. */
export function resourcesOf(id: string, { kind, workDir: path, base }: Workspace): Resource[] {
  if (kind === "copy" || kind === "empty") return [{ kind: "directory", path }];
  if (kind !== "worktree" || base?.worktree === undefined) return [];
  const { sha, branch, repository, worktree } = base;
  const repo = repository.gitDir;
  return [
    { kind: "worktree", repo, path, name: basename(worktree) },
    { kind: "branch", repo, name: branch, sha, mark: branchMark(id) },
  ];
}

async function newWorkDir(id: string): Promise<string> {
  return join(await realpath(tmpdir()), `harness-${id}`);
}

function directory(workDir: string): JailBind {
  return { source: workDir, target: workDir, writable: true, owned: true };
}

async function makeEmpty(id: string, workDir: string): Promise<Workspace> {
  await addResource(id, { kind: "directory", path: workDir });
  await mkdir(workDir, { mode: 0o700 });
  return { kind: "empty", workDir, root: directory(workDir), trees: [] };
}

async function makeWorktree(plan: Plan, signal: AbortSignal | undefined): Promise<Workspace> {
  const { id, repository, forkAt, workDir } = plan;
  const worktree = await addWorktree({ repository, branch: plan.branch, forkAt, path: workDir, record: id, signal });
  const { baseSha: sha, branch, gitDir } = worktree;
  const trees = await privateGit({ ...plan, branch }, sha, gitDir);
  const base = { repository, sha, branch, index: join(gitDir, "index"), worktree: gitDir };
  return { kind: "worktree", workDir, root: directory(workDir), trees, base };
}

/** The files in a directory of their own, which the repository does not know about. */
async function makeCopy(plan: Plan, signal: AbortSignal | undefined): Promise<Workspace> {
  const { id, repository, branch, workDir } = plan;
  const sha = plan.at ?? (await startOf(repository, branch));
  const indexDir = join(runtimeDir(id), "index");
  await addResource(id, { kind: "directory", path: workDir });
  await checkOut(repository, sha, { tree: workDir, index: indexDir }, signal);
  const trees = await privateGit(plan, sha, indexDir);
  return {
    kind: "copy",
    workDir,
    root: directory(workDir),
    trees,
    base: { repository, sha, branch, index: join(indexDir, "index") },
  };
}

async function privateGit(plan: Plan, baseSha: string, indexDir: string): Promise<JailBind[]> {
  const { id, repository, branch, workDir } = plan;
  const dir = join(runtimeDir(id), "git");
  await writePrivateGit({ repository, branch, baseSha, indexDir, dir });
  await failpoint("create.private-git");
  const git = { source: privateGitDir(dir), target: INSIDE_GIT, writable: true, owned: true };
  return [git, ...(await privateGitBinds(repository, dir, workDir))];
}

/**
 * A layer of its own over files that all sandboxes on the commit share; nothing is copied, nothing grows with them. A
 * fork starts with a copy of the layers of its origin, which must stand still meanwhile.
 */
async function makeOverlay({ id, repository, branch, workDir, at }: Plan, origin?: Workspace): Promise<Workspace> {
  const sha = at ?? (await startOf(repository, branch));
  await addResource(id, { kind: "base", path: baseDirOf(repository, sha) });
  const base = await openBase(repository, sha, id);
  const files = await makeLayer(join(runtimeDir(id), "files"), origin?.root.overlay);
  const git = await makeLayer(join(runtimeDir(id), "git"), origin?.trees[0]?.overlay);
  if (origin === undefined) await writeBranch(join(git, "upper"), branch, sha);
  return {
    kind: "overlay",
    workDir,
    root: { source: base.tree, overlay: files, target: workDir, writable: true },
    trees: [
      { source: privateGitDir(base.git), overlay: git, target: INSIDE_GIT, writable: true },
      ...(await privateGitBinds(repository, base.git, workDir)),
    ],
    base: { repository, sha, branch, index: base.index },
  };
}

/** The commit that a branch starts from: its own when it exists, else HEAD's. */
async function startOf({ gitDir }: Repository, branch: string): Promise<string> {
  const sha = (await resolveCommit(gitDir, `refs/heads/${branch}`)) ?? (await resolveCommit(gitDir, "HEAD"));
  if (sha !== undefined) return sha;
  throw new SandboxError("invalid_argument", `The repository ${gitDir} has no commit yet`, { hint: "git commit" });
}
