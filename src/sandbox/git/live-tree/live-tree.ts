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

/** The files of a running sandbox, with all that is needed to save, restore and compare them. */
export interface LiveTree {
  readonly id: string;
  readonly backend: string;
  readonly base?: TreeBase | undefined;
  /** Where a sandbox with a snapshot of these files works, so that absolute paths in them go on working. Absent: anywhere. */
  readonly place?: string | undefined;
  /** What the files belong to. A snapshot can only be restored where this is the same. */
  readonly source: string;
  /** Whether the sandbox made the `.git` at the top, so that it counts as one of its files. */
  readonly ownsGit: boolean;
  /** Absent: the sandbox has no git directory of its own. */
  readonly sandboxGit?: SandboxGit | undefined;
  readonly driver: Pick<Driver, "workDir" | "hostDir" | "baseEnv" | "start" | "importTree" | "remove">;
  /** Whether the paths of a look exist also before and after it. Default false. */
  readonly isLasting?: boolean;
  /** Prepares a look at the files. */
  look(): TreeLook;
  /** Reports to the user what is no failure. */
  warn(message: string): void;
  /** Aborted when the sandbox is being closed. */
  readonly signal: AbortSignal;
  /** Milliseconds after which nobody waits for a call, and a jailed git would only keep the sandbox frozen. */
  readonly patience?: number | undefined;
}

/** The files of a sandbox at one moment. Its paths exist while `frozen` runs, and not before or after unless the tree `isLasting`. */
export interface TreeLook {
  /** The files, to bind into a jail. */
  readonly root: Pick<JailBind, "source" | "overlay">;
  /** The sandbox git, to bind into a jail. */
  readonly sandboxGit?: JailBind | undefined;
  /** All files. Hostile. */
  tar(): AsyncIterable<Uint8Array>;
  /** Runs the guest's program on the frozen files. Absent: not possible. */
  readonly runGuest?: RunGuest | undefined;
  /** Freezes the files while something runs, as well as the backend can. */
  frozen<T>(work: () => Promise<T>): Promise<T>;
}

/** Runs the guest's program in the sandbox, in the work directory; undefined when that is not possible. */
export type RunGuest = (
  args: readonly string[],
  stdin: Uint8Array,
  maxOutput: number,
) => Promise<{ exitCode: number; stdout: Uint8Array } | undefined>;

/** What is checked out in a sandbox git. */
export interface SandboxHead {
  readonly sha: string;
  /** Absent when no branch is checked out. */
  readonly branch?: string;
}

/** The sandbox git, as the host can reach it. */
export interface SandboxGit {
  /** The commit that is checked out, as its files say; the sandbox may have written anything there. Absent: only git can tell. */
  headCommit?(): Promise<string | undefined>;
  /** Gives the sandbox a commit of the source, if it has `known` already. Absent: it can read all of them. */
  lend?(sha: string, known: string): Promise<void>;
  /** Moves the branch that is checked out, in a sandbox that has no git program. */
  advance?(from: string, to: string): Promise<void>;
  /** Makes a new one, at a commit of the source or at the base; returns the reason if that failed. */
  rebuild(head?: SandboxHead): Promise<string | undefined>;
}

/** A new path in a sandbox's runtime directory. */
export function scratchPath(id: string, name: string): string {
  return join(runtimeDir(id), `${name}-${randomBytes(6).toString("hex")}`);
}

/** Removes the scratch paths that a dead process left; for a kept sandbox that is opened again. */
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
