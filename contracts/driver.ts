import type { PushOptions } from "./sandbox.js";
import type { Capabilities, Changes, FileStat, SpawnOptions } from "./types.js";

/** A removal that is still under way while other resources are removed. `gone` settles when it is done. */
export interface PendingRemoval {
  gone: Promise<void>;
}

/** A checked command: `cwd` is absolute and lexically inside `workDir`, and `env` is complete. */
export interface StartSpec {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: "pipe" | "none";
  readonly pty?: { cols: number; rows: number };
  readonly user?: string;
  /**
   * Milliseconds after which the driver must have killed the tree itself, in case it gets no kill request. The portable part kills earlier; this is
   * the second line of defence. Absent: never.
   */
  readonly timeout?: number;
  /**
   * How many bytes to keep of output that nobody reads as it comes: half from its start, half from its end. After passing on that many bytes, a
   * driver may leave out the middle and must then report its size in `DriverExit`. Absent: keep everything.
   */
  readonly kept?: { readonly stdout?: number; readonly stderr?: number };
  /** Aborted when the caller gives up on the command. A driver that has not started it by then must not, and rejects with `aborted`. */
  readonly signal?: AbortSignal;
  /** As in `SpawnOptions`; only passed to a driver with `startsServices`. */
  readonly service?: NonNullable<SpawnOptions["service"]>;
}

/** How a driver's process ended. `exitCode` is 128+n after signal n. */
export interface DriverExit {
  exitCode: number;
  signal?: string;
  oomKilled?: boolean;
  /** True if the driver itself ended the process at `StartSpec.timeout`. */
  timedOut?: boolean;
  /** How many bytes of each stream the driver left out, where `StartSpec.kept` allowed it. */
  leftOut?: { stdout: number; stderr: number };
}

/** A running process of a driver. */
export interface DriverProcess {
  /** Pulled: the command is slowed down while nobody reads. Ends with the process; throws when the backend is lost. */
  readonly stdout: AsyncIterable<Uint8Array>;
  readonly stderr: AsyncIterable<Uint8Array>;
  /** Resolves once there is room for more. After the process has stopped reading, bytes are dropped without an error. */
  writeStdin(chunk: Uint8Array): Promise<void>;
  closeStdin(): Promise<void>;
  /** SIGKILL kills everything the process ever started. No error if the process has ended. */
  kill(signal: string): Promise<void>;
  /** Resolves once the whole tree is gone. Rejects with `backend_lost` or `tampered` if that can't be known. */
  wait(): Promise<DriverExit>;
  resize?(cols: number, rows: number): Promise<void>;
}

/**
 * What every backend implements. Each path it receives is absolute, normalised, free of NUL and lexically inside `workDir`. The driver must confine
 * symbolic links to `workDir` (`path_confinement`), even while commands swap them. No method is called after `close`. Errors are `SandboxError`s
 * with the codes named at each method.
 */
export interface Driver {
  readonly backend: string;
  readonly id: string;
  readonly workDir: string;
  readonly capabilities: Capabilities;
  /** Host path of the work directory, if the host has it. Commands can write there: treat its content as untrusted. */
  readonly hostDir?: string;
  /** The environment that every command starts from: PATH, HOME, LANG and the like. */
  readonly baseEnv: Readonly<Record<string, string>>;
  /** Set by the portable part. Call it to report something the user should know that is not a failure. */
  onWarning?: (message: string) => void;
  /** Start a command. A missing program is a process that exits with 127 and says so on stderr; a missing `cwd` is `not_found`. */
  start(spec: StartSpec): Promise<DriverProcess>;
  /** Whether `start` accepts a `service`. Default false. */
  readonly startsServices?: boolean;
  /** Null if absent. Anything but a regular file is `not_regular_file`; more than `MAX_FILE_BYTES` is `limit_exceeded`. */
  read(path: string): Promise<Uint8Array | null>;
  /** Write each file whole or not at all, and make its parents. A directory in the way is `not_regular_file`. */
  write(files: readonly { path: string; content: Uint8Array; mode: number }[]): Promise<void>;
  /** Describes the link itself, not its target. Null if absent. */
  stat(path: string): Promise<FileStat | null>;
  /** Names in any order. Absent is `not_found`; not a directory is `invalid_path`. */
  list(path: string): Promise<string[]>;
  /** Returns whether something was there. Without `recursive` a directory is `not_regular_file`. */
  remove(path: string, opts: { recursive: boolean }): Promise<boolean>;
  /** Replaces a file at `to`. `from` absent is `not_found`. */
  rename(from: string, to: string): Promise<void>;
  /** Make a directory and its parents; an existing one is fine. A file in the way is `conflict`. */
  makeDirectory(path: string): Promise<void>;
  /** Unpack a tar stream below `path`, which is made if absent. Links and names that lead outside are `path_confinement`. */
  importTree(tar: AsyncIterable<Uint8Array>, path: string): Promise<void>;
  /** The tree below `path` as a tar stream. Absent is `not_found`. The reader treats the stream as untrusted. */
  exportTree(path: string): AsyncIterable<Uint8Array>;
  /** Save the files and return the id. `signal` is aborted when the caller gives up: delete a snapshot that is ready after that. */
  snapshot?(signal?: AbortSignal): Promise<string>;
  /** Reset the files to a snapshot. Unknown: `not_found`. Of another backend or source: `conflict`. */
  restore?(id: string): Promise<void>;
  /** Make `count` independent copies with the files as they are now: all of them or none. */
  fork?(count: number): Promise<Driver[]>;
  /** What has changed since the sandbox was made. */
  changes?(): Promise<Changes>;
  readonly git?: {
    pushBranch(branch: string, token: string, opts?: PushOptions): Promise<{ pushed: boolean; error?: string }>;
    defaultBranch(): Promise<string>;
  };
  /** The URL at which a port of the sandbox can be reached. */
  url?(port: number): Promise<string>;
  /**
   * End everything that runs, and free what this process holds. Recorded resources are removed afterwards by `Backend.removeResource`, or left for
   * `Backend.reopen` if the sandbox is kept. Throws if something could not be ended; may be called again.
   */
  close(): Promise<void> | Promise<PendingRemoval | undefined>;
}
