import type { SandboxErrorCode } from "../../../contracts/errors.js";
import type { Driver, FileCalls } from "../types.js";
import type { Emit, Secrets } from "./events.js";
import type { LifetimeEnd } from "./lifetime.js";
import type { ProcessTable } from "./process-table.js";

/** Why a running call must end. Its caller gets it as a `SandboxError`. */
export interface StopReason {
  code: SandboxErrorCode;
  message: string;
  cause?: unknown;
}

/** A watched process that teardown can end. */
export interface Stoppable {
  /** Kills the tree. The promise settles when it is gone or given up; it never rejects. */
  stop(reason: StopReason): Promise<void>;
}

/** The state that the parts of one open sandbox share. */
export interface OpenSandboxState {
  readonly driver: Driver;
  /** The driver's calls for the paths that the sandbox was opened with: those of the work directory, or all. */
  readonly files: FileCalls;
  readonly paths: "workdir" | "sandbox";
  readonly operationTimeout: number;
  readonly maxOutput: number;
  /** Complete environment of every command. */
  readonly env: Readonly<Record<string, string>>;
  /** What errors and events must not show. */
  readonly hidden: Secrets;
  readonly allow: ReadonlySet<string> | undefined;
  /** Absent if nobody listens, so that no message is built. */
  readonly emit: Emit | undefined;
  readonly running: Set<Stoppable>;
  /** Called when a call or a process has ended. Absent if nobody measures how long the sandbox is idle. */
  onUsed?: (() => void) | undefined;
  /** How many calls are under way, besides processes. */
  calls: number;
  readonly processes: ProcessTable;
  /** Where relative paths and commands start; with `paths: "workdir"` inside `workDir`. */
  cwd: string;
  closed: boolean;
  /** Why it was closed, if that was not by `teardown`. */
  ending?: LifetimeEnd;
}
