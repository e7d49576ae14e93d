import type { SandboxErrorCode } from "../../../contracts/errors.js";
import type { ProcessInfo } from "../../../contracts/types.js";
import type { Driver } from "../types.js";
import type { Emit } from "./events.js";

/** Why a call that is under way must end, told to its caller as a `SandboxError`. */
export interface StopReason {
  code: SandboxErrorCode;
  message: string;
  cause?: unknown;
}

/** A process under watch that teardown can end. */
export interface Stoppable {
  /** Kills the tree. The returned promise settles when it is gone or given up, and never rejects. */
  stop(reason: StopReason): Promise<void>;
}

/** What the parts of one open sandbox share. */
export interface OpenSandboxState {
  readonly driver: Driver;
  readonly operationTimeout: number;
  readonly maxOutput: number;
  /** Environment of every command, complete. */
  readonly env: Readonly<Record<string, string>>;
  readonly allow: ReadonlySet<string> | undefined;
  /** Absent when nobody listens, so that no message is built. */
  readonly emit: Emit | undefined;
  readonly running: Set<Stoppable>;
  readonly processes: Map<string, ProcessInfo>;
  /** Where relative paths and commands start; inside `workDir`. */
  cwd: string;
  closed: boolean;
}
