import { randomBytes } from "node:crypto";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { SandboxError } from "../../../../contracts/errors.js";
import { runtimeDir } from "../../../machine/home.js";
import { removeTree } from "../../../machine/remove-tree.js";
import type { JailBind } from "../../jail.js";
import type { Driver } from "../../types.js";
import type { TreeBase } from "../source.js";

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
  readonly sandboxGit?: SandboxGit | undefined;
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
  readonly sandboxGit?: JailBind | undefined;
  /** All files; hostile. */
  tar(): AsyncIterable<Uint8Array>;
  /** Runs the guest's program on the files, while they are held still. Absent: that cannot be done. */
  readonly runGuest?: RunGuest | undefined;
  /** Holds the files still while something runs, as well as the backend can. */
  frozen<T>(work: () => Promise<T>): Promise<T>;
}

/** Runs the guest's program inside, in the work directory; undefined when it could not be run. */
export type RunGuest = (
  args: readonly string[],
  stdin: Uint8Array,
  maxOutput: number,
) => Promise<{ exitCode: number; stdout: Uint8Array } | undefined>;

/** Where the inside's own history stands. */
export interface SandboxHead {
  readonly sha: string;
  /** Absent when no branch is checked out. */
  readonly branch?: string;
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

/** The error for a call that needs a repository. */
export function needsRepository(operation: string): SandboxError {
  return new SandboxError("unsupported", `${operation} needs a sandbox with a repository`, {
    hint: "open it with the option repo",
  });
}
