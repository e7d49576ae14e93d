import { randomBytes } from "node:crypto";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { SandboxError } from "../../../../contracts/errors.js";
import { runtimeDir } from "../../../machine/home.js";
import { removeTree } from "../../../machine/remove-tree.js";
import type { JailBind } from "../../jail.js";
import type { Driver } from "../../types.js";
import { listIndexPaths, listLayerPaths } from "../commit/changed-paths.js";
import type { TreeCommitOptions } from "../commit/tree-commit.js";
import { makeFastCommit, type RunGuest } from "../fast-commit.js";
import type { SandboxHead } from "../jailed/jailed-commit.js";
import { startSpareJail, takeJail } from "../jailed/spare-jail.js";
import { objectBinds } from "../repository/object-store.js";
import { resolveCommit } from "../repository/repository.js";
import { INSIDE_GIT } from "../sandbox-git/borrowing-git.js";
import { type TreeBase, treeOf } from "../source/tree-base.js";

const SCRATCH = /^[a-z]+-[0-9a-f]{12}(\.[a-z]+)?$/;

/** A running sandbox, as far as saving, restoring and comparing its files needs it. */
export interface LiveTree {
  readonly id: string;
  readonly backend: string;
  readonly base?: TreeBase | undefined;
  /** What the files belong to: a snapshot can only be restored where this is the same. */
  readonly source: string;
  /** Whether `.git` at the top is a file like any other, made inside. Else it is the user's, or one that we made. */
  readonly ownsGit: boolean;
  /** The git directory that was made for the inside, in which it commits. Absent: there is none. */
  readonly inside?: SandboxGit | undefined;
  readonly driver: Pick<Driver, "workDir" | "baseEnv" | "start" | "importTree" | "remove">;
  /** Whether what a look names is there also before and after it. Default false. */
  readonly isLasting?: boolean;
  /** Prepares a look at the files. */
  look(): TreeLook;
  /** Tells the user what is no failure. */
  warn(message: string): void;
  /** Says that the sandbox is being taken down. */
  readonly signal: AbortSignal;
  /** Milliseconds after which nobody waits for a call any more: a jailed git that goes on then would only hold the sandbox still. */
  readonly patience?: number | undefined;
}

/** The files of a sandbox at one moment. What it names is there while `frozen` runs, and not before or after unless the tree `isLasting`. */
export interface TreeLook {
  /** The files, for a jail to see. */
  readonly root: Pick<JailBind, "source" | "overlay">;
  /** The git directory of the inside, for a jail to see. */
  readonly inside?: JailBind | undefined;
  /** All files; hostile. */
  tar(): AsyncIterable<Uint8Array>;
  /** Runs the guest's program on the files, while they are held still. Absent: that cannot be done. */
  readonly runGuest?: RunGuest | undefined;
  /** Holds the files still while something runs, as well as the backend can. */
  frozen<T>(work: () => Promise<T>): Promise<T>;
}

/** The git directory of the inside, as the host can reach it. */
export interface SandboxGit {
  /** The commit that is checked out, as far as plain files say; the inside may have written them. Absent: only git can tell. */
  headCommit?(): Promise<string | undefined>;
  /** Lets the inside read a commit of the repository's, when it has `known` already. Absent: it reads all of them. */
  lend?(sha: string, known: string): Promise<void>;
  /** Lets the branch that is checked out follow, in an inside that has no git to do it and so none to ask. */
  advance?(from: string, to: string): Promise<void>;
  /** Makes it anew, at a commit of the repository's or at the base; gives why that failed, if it did. */
  rebuild(head?: SandboxHead): Promise<string | undefined>;
}

/** A name below a sandbox's runtime directory that nothing else has. */
export function scratchPath(id: string, name: string): string {
  return join(runtimeDir(id), `${name}-${randomBytes(6).toString("hex")}`);
}

/** Removes what a process that died left of such names; to be called when a kept sandbox is opened again. */
export async function sweepScratch(id: string): Promise<void> {
  const dir = runtimeDir(id);
  for (const name of await readdir(dir)) if (SCRATCH.test(name)) await removeTree(join(dir, name));
}

/**
 * How the files of a sandbox are committed in a jail; with the commits made inside, when wanted. One of many has a jail begun for the next. An
 * exact one has every byte of files that a filter wrote: what a filter would make of them may stand for bytes that are nowhere else.
 */
export async function commitOptionsOf(
  tree: LiveTree,
  opts: { withCommits: boolean; look?: TreeLook; isOneOfMany?: boolean; isExact?: boolean },
): Promise<TreeCommitOptions> {
  const { id, base, signal } = tree;
  signal.throwIfAborted();
  const look = opts.look ?? tree.look();
  const store = scratchPath(id, "store");
  const objects = base === undefined ? [] : objectBinds(base.repository);
  const own = opts.withCommits ? look.inside : undefined;
  if (own !== undefined) objects.push({ ...own, writable: false });
  const isShared = opts.withCommits && own === undefined && base !== undefined;
  const parent = isShared ? await resolveCommit(base.repository.gitDir, `refs/heads/${base.branch}`) : undefined;
  const { repository, sha: baseSha } = base ?? {};
  const filters = repository?.filters ?? [];
  const isUnfiltered = opts.isExact === true && filters.length > 0;
  const index = isUnfiltered ? undefined : base?.index;
  const { source, overlay } = look.root;
  const places = { tree: look.root, objects, signal, timeout: tree.patience };
  return {
    sandboxId: id,
    sandbox: tree,
    ...(await takeJail(tree, store, places)),
    ...(opts.isOneOfMany === true &&
      tree.isLasting === true && { done: () => startSpareJail(tree, scratchPath(id, "store"), places) }),
    ...(repository && baseSha && { source: { repository, baseSha, ...(index && { index }) } }),
    ...(own && { inside: INSIDE_GIT }),
    ...(!isUnfiltered && { filters }),
    parent,
    ...(base !== undefined &&
      filters.length === 0 &&
      index !== undefined &&
      tree.isLasting === true && {
        makeFast: async (message) =>
          await makeFastCommit({
            base,
            root: look.root,
            inside: own,
            runInside: look.runGuest,
            tree: await treeOf(base),
            parent,
            message,
          }),
      }),
    changedPaths: async () => {
      if (isUnfiltered) return undefined;
      if (overlay !== undefined) return await listLayerPaths(source, overlay);
      return base === undefined || index === undefined
        ? undefined
        : await listIndexPaths(index, await treeOf(base), source);
    },
    frozen: (work) => look.frozen(work),
  };
}

/** The error for a call that needs a repository. */
export function needsRepository(operation: string): SandboxError {
  return new SandboxError("unsupported", `${operation} needs a sandbox with a repository`, {
    hint: "open it with the option repo",
  });
}
