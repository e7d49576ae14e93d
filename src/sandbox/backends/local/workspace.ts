import { existsSync, lstatSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Resource } from "../../../../contracts/backend.js";
import { SandboxError } from "../../../../contracts/errors.js";
import { failpoint } from "../../../machine/failpoint.js";
import { runtimeDir } from "../../../machine/home.js";
import { temporaryDirectory } from "../../../machine/temporary-directory.js";
import {
  baseDirOf,
  borrowingGitBinds,
  borrowingGitDir,
  findSource,
  findStart,
  giveIndex,
  INSIDE_GIT,
  type InheritedGit,
  openBase,
  type Repository,
  readInheritedGit,
  resolveCommit,
  resourcesOfSource,
  startCheckOut,
  startWorktree,
  type TreeBase,
  writeBorrowingGit,
  writeBranch,
} from "../../git.js";
import type { JailBind } from "../../jail.js";
import type { SandboxOptions } from "../../types.js";
import { checkBaseDir, protectGit } from "./base-dir.js";
import { makeLayer } from "./layer.js";
import { type DiskImage, makeImage, mountsOf, planImage } from "./limits.js";

/** Where the files of a sandbox are and which of them commands see; enough to reopen it. */
export interface Workspace {
  kind: "worktree" | "overlay" | "copy" | "base-dir" | "empty";
  /** Where the work directory is inside. */
  workDir: string;
  /** What the work directory is made of. */
  root: JailBind;
  /** What is bound in addition to the work directory. */
  trees: JailBind[];
  /** The commit that the files started from, in the user's repository. */
  base?: TreeBase;
  /** What bounds the size of everything that commands can write to on disk. */
  disk?: DiskImage;
}

/** A planned workspace: everything that could be refused was checked, and nothing is made yet. */
export interface PlannedWorkspace {
  workDir: string;
  /** What the ledger must know before anything is made. */
  resources: readonly Resource[];
  make(id: string, signal?: AbortSignal): Promise<MadeWorkspace>;
}

/** A workspace that a sandbox can be started on. */
export interface MadeWorkspace {
  workspace: Workspace;
  /** Pending while its files are still being written. Await it before any command runs, and before they are removed. */
  filled?: Promise<void>;
}

/** Checks what the sandbox will work on, without making anything. With `startAt` its branch is new and starts at this commit. */
export async function planWorkspace(id: string, opts: SandboxOptions, startAt?: string): Promise<PlannedWorkspace> {
  if (opts.baseDir !== undefined) {
    const workDir = checkBaseDir(opts.baseDir);
    return {
      workDir,
      resources: [],
      make: async () => ({
        workspace: {
          kind: "base-dir",
          workDir,
          root: directory({ hostDir: workDir, workDir }),
          trees: protectGit(workDir),
        },
      }),
    };
  }
  const hostDir = newHostDir(id);
  const place = { hostDir, workDir: opts.workDir ?? hostDir };
  const bytes = opts.limits?.disk;
  if (opts.repo === undefined) return onImage(planEmpty(place), id, bytes, [hostDir]);
  const repository = await findSource(opts.repo, opts);
  const branch = opts.branch ?? `glovebox/${id}`;
  const plan = { id, repository, branch, ...place };
  const isWorktree = opts.workspace === undefined || opts.workspace === "worktree";
  const isOurs = opts.branch === undefined || repository.url !== undefined;
  if (isWorktree && !isOurs && startAt === undefined) return planWorktree(plan);
  const sha = startAt ?? (await findStart(repository, opts.branch));
  if (opts.workspace === "overlay") return onImage(planOverlay({ ...plan, at: sha }), id, bytes, layersOf(id));
  if (opts.workspace === "copy") {
    return onImage(planCopy({ ...plan, at: sha }), id, bytes, [hostDir, insideGitDir(id)]);
  }
  const isNew = opts.branch === undefined || repository.url === undefined;
  return planWorktree(isNew ? { ...plan, newAt: sha } : { ...plan, resetTo: sha });
}

/** Puts what commands can write to on an image of its own, if its size is limited. */
function onImage(
  planned: PlannedWorkspace,
  id: string,
  bytes: number | undefined,
  places: readonly string[],
): PlannedWorkspace {
  if (bytes === undefined) return planned;
  const disk = planImage(runtimeDir(id), bytes, places);
  return {
    ...planned,
    // Removed first: what is mounted can't be removed.
    resources: [...planned.resources, ...mountsOf(disk)],
    async make(own, signal) {
      await makeImage(disk, signal);
      const made = await planned.make(own, signal);
      return { ...made, workspace: { ...made.workspace, disk } };
    },
  };
}

function planEmpty(place: Place): PlannedWorkspace {
  const { hostDir, workDir } = place;
  return { workDir, resources: [{ kind: "directory", path: hostDir }], make: async () => makeEmpty(place) };
}

/** What it makes is recorded as it is made, under the lock of the repository. */
function planWorktree(plan: Plan): PlannedWorkspace {
  const { workDir, repository } = plan;
  return { workDir, resources: resourcesOfSource(repository), make: (_, signal) => makeWorktree(plan, signal) };
}

function planCopy(plan: Start): PlannedWorkspace {
  const { workDir, hostDir, repository } = plan;
  const resources = [...resourcesOfSource(repository), { kind: "directory", path: hostDir }];
  return { workDir, resources, make: (_, signal) => makeCopy(plan, signal) };
}

function planOverlay(plan: Start, origin?: Workspace): PlannedWorkspace {
  const { workDir, repository, at } = plan;
  const resources = [...resourcesOfSource(repository), { kind: "base", path: baseDirOf(repository, at) }];
  return { workDir, resources, make: () => makeOverlay(plan, origin) };
}

/** Where the files are. */
interface Place {
  /** On the host. An overlay has no directory there. */
  hostDir: string;
  /** Inside. */
  workDir: string;
}

/** The plan for a workspace of a repository. */
interface Plan extends Place {
  id: string;
  repository: Repository;
  branch: string;
  /** The branch is known to be new and starts here. */
  newAt?: string;
  /** The branch starts at this commit, wherever it was before. */
  resetTo?: string;
  /** Start at this commit, on a new branch that is named after `branch`. */
  forkAt?: string;
}

/** A workspace that does not touch the branches of its repository, and the commit it starts from. */
type Start = Plan & { at: string };

/**
 * Checks where the copy of another sandbox will be: in a directory of its own, and inside at the same path, so that what contains absolute paths still
 * works. Without isolation the two are one.
 */
export async function planFork(
  id: string,
  n: number,
  origin: Workspace,
  isConfined: boolean,
): Promise<PlannedWorkspace> {
  const hostDir = newHostDir(id);
  const place = { hostDir, workDir: isConfined ? origin.workDir : hostDir };
  const { base, kind } = origin;
  const bytes = origin.disk?.bytes;
  if (base === undefined) return onImage(planEmpty(place), id, bytes, [hostDir]);
  const { repository, branch, sha } = base;
  const plan = { id, repository, branch: `${branch}-fork-${n}`, ...place, at: sha };
  if (kind === "overlay") return onImage(planOverlay(plan, origin), id, bytes, layersOf(id));
  if (kind === "copy") return onImage(planCopy(plan), id, bytes, [hostDir, insideGitDir(id)]);
  return {
    workDir: place.workDir,
    resources: resourcesOfSource(repository),
    async make(_, signal) {
      // Without isolation, commits made by commands are on the branch itself.
      const tip = isConfined ? undefined : await resolveCommit(repository.gitDir, `refs/heads/${branch}`);
      const { workspace, ...made } = await makeWorktree({ ...plan, branch, forkAt: tip ?? sha }, signal);
      return { ...made, workspace: { ...workspace, ...(workspace.base && { base: { ...workspace.base, sha } }) } };
    },
  };
}

function newHostDir(id: string): string {
  return join(temporaryDirectory(), `harness-${id}`);
}

/** The host's path of the files; undefined for an overlay, whose files are in two layers. */
export function hostDirOf({ root }: Workspace): string | undefined {
  return root.overlay === undefined ? root.source : undefined;
}

/**
 * Refuses to reopen a sandbox whose directory is no longer the one that was made for it. It is among the temporary files of all users: once it was
 * removed, as at a restart, another user can put a link or a directory of their own in its place.
 */
export function checkHostDir(workspace: Workspace): void {
  const hostDir = workspace.kind === "base-dir" ? undefined : hostDirOf(workspace);
  const found = hostDir === undefined ? undefined : lstatSync(hostDir, { throwIfNoEntry: false });
  // A missing one is reported when the sandbox starts.
  if (found === undefined || (found.isDirectory() && found.uid === (process.geteuid?.() ?? found.uid))) return;
  throw new SandboxError("tampered", `${hostDir} is not the directory that was made for the sandbox`, {
    hint: "Somebody replaced it. Remove the rest of the sandbox (glovebox rm <id>) and open another",
  });
}

function directory({ hostDir, workDir }: Place): JailBind {
  return { source: hostDir, target: workDir, writable: true, owned: true };
}

function makeEmpty(place: Place): MadeWorkspace {
  const { hostDir, workDir } = place;
  // An image may be mounted there already.
  if (!existsSync(hostDir)) mkdirSync(hostDir, { mode: 0o700 });
  return { workspace: { kind: "empty", workDir, root: directory(place), trees: [] } };
}

async function makeWorktree(plan: Plan, signal: AbortSignal | undefined): Promise<MadeWorkspace> {
  const { id, repository, newAt, resetTo, forkAt, hostDir } = plan;
  const start = { branch: plan.branch, newAt, resetTo, forkAt };
  let source: Promise<InheritedGit> | undefined;
  const onFilling = (): void => {
    source = readInheritedGit(repository);
    source.catch(() => undefined);
  };
  const place = { repository, path: hostDir, record: id, onFilling, signal };
  const { worktree, filled } = await startWorktree({ ...start, ...place });
  const { baseSha: sha, branch, gitDir } = worktree;
  const index = join(gitDir, "index");
  const base = { repository, sha, branch, index, worktree: gitDir };
  return await besides(filled, { ...plan, branch, source }, { kind: "worktree", base });
}

/** The files in a directory of their own, which the repository does not know. */
async function makeCopy(plan: Start, signal: AbortSignal | undefined): Promise<MadeWorkspace> {
  const { id, repository, branch, hostDir, at: sha } = plan;
  const indexDir = join(runtimeDir(id), "index");
  const { filled } = await startCheckOut(repository, sha, { tree: hostDir, index: indexDir }, signal);
  const base = { repository, sha, branch, index: join(indexDir, "index") };
  return await besides(filled, plan, { kind: "copy", base });
}

/** Makes the rest of a workspace while its files are being written. */
async function besides(
  filled: Promise<void>,
  plan: Plan & { source?: Promise<InheritedGit> | undefined },
  what: { kind: "worktree" | "copy"; base: TreeBase & { index: string } },
): Promise<MadeWorkspace> {
  const { id, workDir } = plan;
  try {
    const trees = await borrowingGit(plan, what.base.sha, plan.source);
    const indexed = filled.then(() => giveIndex(insideGitDir(id), what.base.index));
    indexed.catch(() => undefined);
    return { workspace: { ...what, workDir, root: directory(plan), trees }, filled: indexed };
  } catch (error) {
    await filled.catch(() => undefined);
    throw error;
  }
}

/** The layers of an overlay: over the files, and over the git directory. */
function layersOf(id: string): [files: string, git: string] {
  return [join(runtimeDir(id), "files"), insideGitDir(id)];
}

function insideGitDir(id: string): string {
  return join(runtimeDir(id), "git");
}

async function borrowingGit(plan: Plan, baseSha: string, source?: Promise<InheritedGit>): Promise<JailBind[]> {
  const { id, repository, branch, workDir } = plan;
  const dir = insideGitDir(id);
  await writeBorrowingGit({ repository, branch, baseSha, dir, source });
  await failpoint("create.sandbox-git");
  const git = { source: borrowingGitDir(dir), target: INSIDE_GIT, writable: true, owned: true };
  return [git, ...borrowingGitBinds(repository, dir, workDir)];
}

/**
 * A layer of its own over files that all sandboxes on the commit share: nothing is copied. A fork starts with a copy of the layers of its origin,
 * which must be frozen meanwhile.
 */
async function makeOverlay(plan: Start, origin?: Workspace): Promise<MadeWorkspace> {
  const { id, repository, branch, workDir, at: sha } = plan;
  const base = await openBase(repository, sha, id);
  const [filesDir, gitDir] = layersOf(id);
  const files = await makeLayer(filesDir, origin?.root.overlay);
  const git = await makeLayer(gitDir, origin?.trees[0]?.overlay);
  if (origin === undefined) writeBranch(join(git, "upper"), branch, sha);
  return {
    workspace: {
      kind: "overlay",
      workDir,
      root: { source: base.tree, overlay: files, target: workDir, writable: true },
      trees: [
        { source: borrowingGitDir(base.git), overlay: git, target: INSIDE_GIT, writable: true },
        ...borrowingGitBinds(repository, base.git, workDir),
      ],
      base: { repository, sha, branch, index: base.index },
    },
  };
}
