import type { PushOptions } from "./sandbox.js";
import type { Capabilities, Changes, FileStat, SpawnOptions } from "./types.js";

/** What is still on its way out, while other things are removed. */
export interface Vanishing {
  gone: Promise<void>;
}

/** A checked command: `cwd` is absolute and lexically inside `workDir`, `env` is complete. */
export interface StartSpec {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: "pipe" | "none";
  readonly pty?: { cols: number; rows: number };
  readonly user?: string;
  /**
   * When the driver must have killed the tree by itself, in case nobody tells it to any more. The portable part kills
   * earlier; this is the second line. Absent: never.
   */
  readonly timeout?: number;
  /**
   * Of an output that nobody follows only so many bytes are kept, half of them its first, half its last. A driver may leave out what lies
   * between, once it has given that many bytes, and then says in `DriverExit` how much that was. Absent: all is wanted.
   */
  readonly kept?: { readonly stdout?: number; readonly stderr?: number };
  /** Aborted when nobody wants the command any more. A driver that has not begun it by then does not, and rejects with `aborted`. */
  readonly signal?: AbortSignal;
  /** As in `SpawnOptions`; given only to a driver with `startsServices`. */
  readonly service?: NonNullable<SpawnOptions["service"]>;
}

/** How a driver's process ended. `exitCode` is 128+n after signal n. */
export interface DriverExit {
  exitCode: number;
  signal?: string;
  oomKilled?: boolean;
  /** True when the driver itself has ended it, at the timeout that it was started with. */
  timedOut?: boolean;
  /** How many bytes of each output the driver has left out, where `kept` let it. */
  leftOut?: { stdout: number; stderr: number };
}

/** A running process of a driver. */
export interface DriverProcess {
  /** Pulled: the command is slowed down while nobody asks. Ends with the process; throws when the backend is lost. */
  readonly stdout: AsyncIterable<Uint8Array>;
  readonly stderr: AsyncIterable<Uint8Array>;
  /** Resolves once there is room for more. After the process stopped reading, bytes are dropped without an error. */
  writeStdin(chunk: Uint8Array): Promise<void>;
  closeStdin(): Promise<void>;
  /** SIGKILL takes everything the process ever started. A process that has ended is no error. */
  kill(signal: string): Promise<void>;
  /** Resolves once the whole tree is gone; rejects with `backend_lost` or `tampered` when that cannot be known. */
  wait(): Promise<DriverExit>;
  resize?(cols: number, rows: number): Promise<void>;
}

/**
 * All that a backend writes. Every path it receives is absolute, normalised, free of NUL and lexically inside `workDir`;
 * the driver must keep symbolic links inside (`path_confinement`), also while the inside swaps them. No method is called
 * after `close`. Errors are `SandboxError`s with the code that each method names.
 */
export interface Driver {
  readonly backend: string;
  readonly id: string;
  readonly workDir: string;
  readonly capabilities: Capabilities;
  /** Where the host has the work directory, if it has it: the inside can write there. */
  readonly hostDir?: string;
  /** The environment that every command starts from: PATH, HOME, LANG and the like. */
  readonly baseEnv: Readonly<Record<string, string>>;
  /** Set by the portable part; called by the driver with what the user should know and is no failure. */
  onWarning?: (message: string) => void;
  /** A missing program is a process that ends with 127 and says so on stderr; a missing `cwd` is `not_found`. */
  start(spec: StartSpec): Promise<DriverProcess>;
  /** Whether `start` takes a `service`. */
  readonly startsServices?: boolean;
  /** Null when absent. Anything but a regular file: `not_regular_file`. Over `MAX_FILE_BYTES`: `limit_exceeded`. */
  read(path: string): Promise<Uint8Array | null>;
  /** Each file whole or not at all, parents made. A directory in the way is `not_regular_file`. */
  write(files: readonly { path: string; content: Uint8Array; mode: number }[]): Promise<void>;
  /** Describes the link itself. Null when absent. */
  stat(path: string): Promise<FileStat | null>;
  /** Names in any order. Absent: `not_found`. Not a directory: `invalid_path`. */
  list(path: string): Promise<string[]>;
  /** Whether something was there. Without `recursive` a directory is `not_regular_file`. */
  remove(path: string, opts: { recursive: boolean }): Promise<boolean>;
  rename(from: string, to: string): Promise<void>;
  /** With parents; existing is fine. A file in the way is `conflict`. */
  makeDirectory(path: string): Promise<void>;
  /** Unpack a tar stream below `path`, which is made. Links and names that lead outside: `path_confinement`. */
  importTree(tar: AsyncIterable<Uint8Array>, path: string): Promise<void>;
  /** The tree below `path` as a tar stream. Absent: `not_found`. The reader treats it as hostile. */
  exportTree(path: string): AsyncIterable<Uint8Array>;
  /** `signal` is aborted when nobody waits for the id any more: a snapshot that is ready later is deleted again. */
  snapshot?(signal?: AbortSignal): Promise<string>;
  restore?(id: string): Promise<void>;
  fork?(count: number): Promise<Driver[]>;
  changes?(): Promise<Changes>;
  readonly git?: {
    pushBranch(branch: string, token: string, opts?: PushOptions): Promise<{ pushed: boolean; error?: string }>;
    defaultBranch(): Promise<string>;
  };
  url?(port: number): Promise<string>;
  /**
   * End all that runs, and give back what this process holds. What the record names is removed after that by
   * `Backend.removeResource`, or left for `Backend.reopen` when the sandbox is kept. Throws what could not be ended; callable again.
   */
  close(): Promise<void> | Promise<Vanishing | undefined>;
}
