import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { SandboxError } from "../errors.js";
import { runtimeDir } from "../home.js";
import type { Driver } from "../types.js";
import { findAlternates } from "./alternates.js";
import { INSIDE_OBJECTS } from "./git-directory.js";
import type { JailBind } from "./jail.js";
import { createJailedGit } from "./jailed-git.js";
import type { JailedPackOptions } from "./jailed-pack.js";
import { INSIDE_GIT } from "./private-git.js";
import { resolveCommit } from "./repository.js";
import type { Workspace } from "./workspace.js";

/** A running sandbox, as far as saving, restoring and comparing its files needs it. */
export interface LiveTree {
  readonly id: string;
  readonly workspace: Workspace;
  readonly isConfined: boolean;
  readonly driver: Pick<Driver, "workDir" | "baseEnv" | "start" | "importTree" | "exportTree" | "remove">;
  /** Tells the user what is no failure. */
  warn(message: string): void;
  /** Holds the sandbox still while something runs, where that can be done. */
  frozen<T>(work: () => Promise<T>): Promise<T>;
  /** Says that the sandbox is being taken down. */
  readonly signal: AbortSignal;
}

/** The bind that shows the inside its private git directory; absent without isolation or a repository. */
export function privateGitOf({ workspace, isConfined }: LiveTree): JailBind | undefined {
  return isConfined ? workspace.trees.find(({ target }) => target === INSIDE_GIT) : undefined;
}

/** Whether `.git` at the top is a file like any other, made inside. Else it is the user's, or leads to the private one. */
export function ownsGit({ kind, workDir, trees }: Workspace): boolean {
  return (kind === "base-dir" || kind === "empty") && !trees.some(({ target }) => target === join(workDir, ".git"));
}

/** A name below a sandbox's runtime directory that nothing else has. */
export function scratchPath(id: string, name: string): string {
  return join(runtimeDir(id), `${name}-${randomBytes(6).toString("hex")}`);
}

/** What a jail needs to read the objects of a repository. */
export async function objectBinds(objects: string): Promise<JailBind[]> {
  const others = await findAlternates(objects);
  return [{ source: objects, target: INSIDE_OBJECTS }, ...others.map((path) => ({ source: path, target: path }))];
}

/** How the files of a sandbox are committed in a jail; with the commits made inside, when wanted. */
export async function jailedPackOf(tree: LiveTree, opts: { withCommits: boolean }): Promise<JailedPackOptions> {
  const { id, workspace, signal } = tree;
  signal.throwIfAborted();
  const { base, root } = workspace;
  const store = scratchPath(id, "store");
  const objects = base === undefined ? [] : await objectBinds(base.repository.objects);
  const own = opts.withCommits ? privateGitOf(tree) : undefined;
  if (own !== undefined) objects.push({ ...own, writable: false });
  const isShared = opts.withCommits && own === undefined && base !== undefined;
  const parent = isShared ? await resolveCommit(base.repository.gitDir, `refs/heads/${base.branch}`) : undefined;
  return {
    sandboxId: id,
    store,
    runJailedGit: createJailedGit({ store, tree: root, objects, signal }),
    ...(base && { source: { repository: base.repository, baseSha: base.sha, index: base.index } }),
    ...(own && { inside: INSIDE_GIT }),
    parent,
    frozen: tree.frozen,
  };
}

/** The error for a call that needs a repository. */
export function needsRepository(operation: string): SandboxError {
  return new SandboxError("unsupported", `${operation} needs a sandbox with a repository`, {
    hint: "open it with the option repo",
  });
}
