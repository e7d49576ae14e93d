import type { SandboxErrorCode } from "../../../contracts/errors.js";
import type { ProcessInfo } from "../../../contracts/types.js";
import type { Driver } from "../types.js";
import type { Emit } from "./events.js";

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
  readonly operationTimeout: number;
  readonly maxOutput: number;
  /** Complete environment of every command. */
  readonly env: Readonly<Record<string, string>>;
  readonly allow: ReadonlySet<string> | undefined;
  /** Absent if nobody listens, so that no message is built. */
  readonly emit: Emit | undefined;
  readonly running: Set<Stoppable>;
  readonly processes: Map<string, ProcessInfo>;
  /** Where relative paths and commands start; inside `workDir`. */
  cwd: string;
  closed: boolean;
}
