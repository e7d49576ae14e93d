import type { PushOptions } from "./sandbox.js";
import type {
  Capabilities,
  Changes,
  DirectoryEntry,
  FileStat,
  NetworkPolicy,
  NetworkWindow,
  SecretRule,
  SpawnOptions,
} from "./types.js";

/** A removal that is still under way while other resources are removed. `gone` settles when it is done. */
export interface PendingRemoval {
  gone: Promise<void>;
}

/** A checked command: `cwd` is absolute and lexically inside `workDir`, unless `anywhere` is set, and `env` is complete. */
export interface StartSpec {
  readonly argv: readonly string[];
  readonly cwd: string;
  /** `cwd` may be any path: the command enters it with its own rights. Only passed where `capabilities.paths` has `sandbox`. */
  readonly anywhere?: true;
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: "pipe" | "none";
  readonly pty?: { cols: number; rows: number };
  readonly user?: string;
  /** Use one pipe for both outputs. All of it is on `stdout`, and `stderr` is empty. Only passed where `capabilities.combinedOutput` is true. */
  readonly combined?: true;
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

/** A connection to a server in the sandbox. */
export interface DriverConnection {
  /** Pulled: the server is slowed down while nobody reads. Ends with the server's half; throws if it was reset or the backend is lost. */
  readonly input: AsyncIterable<Uint8Array>;
  /** Resolves once there is room for more; rejects once the other side is gone. The chunk must never change after the call: it may not be copied. */
  write(chunk: Uint8Array): Promise<void>;
  /** Ends our half; the server may still write. Resolves once everything has been passed on. */
  end(): Promise<void>;
  /** Closes the connection at once. What was not passed on is lost. */
  destroy(): void;
}

/** A file to write. */
export interface DriverFile {
  readonly path: string;
  readonly content: Uint8Array;
  /** Permission bits. Undefined: those of the regular file that is replaced, 0o644 if there is none. */
  readonly mode: number | undefined;
}

/** A file to write from a stream. */
export interface DriverFileStream {
  readonly path: string;
  readonly source: AsyncIterable<Uint8Array>;
  /** Permission bits, as of `DriverFile`. */
  readonly mode: number | undefined;
}

/** How the portable part cancels a file call. */
export interface DriverCallOptions {
  /** Aborted when the caller gives up. Cancel what is under way, and don't start what has not started; the result is ignored. */
  readonly signal?: AbortSignal;
}

/** The file calls of a driver. Errors are `SandboxError`s with the codes named at each method. */
export interface FileCalls {
  /** Null if absent. Anything but a regular file is `not_regular_file`; more than `MAX_FILE_BYTES` is `limit_exceeded`. */
  read(path: string, opts?: DriverCallOptions): Promise<Uint8Array | null>;
  /** Write each file whole or not at all, and make its parents. A directory in the way is `not_regular_file`. */
  write(files: readonly DriverFile[], opts?: DriverCallOptions): Promise<void>;
  /** Describes the link itself, not its target. Null if absent. */
  stat(path: string, opts?: DriverCallOptions): Promise<FileStat | null>;
  /** Names in any order. Absent is `not_found`; not a directory is `invalid_path`. */
  list(path: string, opts?: DriverCallOptions): Promise<string[]>;
  /** Returns whether something was there. Without `recursive` a directory is `not_regular_file`. */
  remove(path: string, opts: DriverCallOptions & { recursive: boolean }): Promise<boolean>;
  /** Replaces a file or an empty directory at `to`, and makes its parents. `from` absent is `not_found`. */
  rename(from: string, to: string, opts?: DriverCallOptions): Promise<void>;
  /** Make a directory and its parents; an existing one is fine. A file in the way is `conflict`. */
  makeDirectory(path: string, opts?: DriverCallOptions): Promise<void>;
  /** Like `list`, with what each entry is. Default: `list`, and `stat` of each name. */
  listDetails?(path: string, opts?: DriverCallOptions): Promise<DirectoryEntry[]>;
  /**
   * Describes what a link leads to. Null if that is absent; outside is `path_confinement`, a loop `invalid_path`. Default: following a link is
   * `unsupported`.
   */
  statTarget?(path: string, opts?: DriverCallOptions): Promise<FileStat | null>;
  /** Removes an empty directory; returns whether there was one. One with entries is `conflict`. Default: `unsupported`. */
  removeDirectory?(path: string, opts?: DriverCallOptions): Promise<boolean>;
  /**
   * Copies a file, a link or, with `recursive`, a tree, whole or not at all, with permission bits; links as links. `from` absent is `not_found`; a
   * directory without `recursive` is `not_regular_file`, one into itself `invalid_argument`; a full directory at `to` is `conflict`. Default:
   * `unsupported`.
   */
  copy?(from: string, to: string, opts: DriverCallOptions & { recursive: boolean }): Promise<void>;
  /** Adds to a file, all of the content or nothing. `mode` is for a new file. Default: `unsupported`. */
  append?(file: DriverFile, opts?: DriverCallOptions): Promise<void>;
  /**
   * A file of any size, from byte `start` on and at most `length` bytes, pulled. Null if absent. Iterated once; `return` frees it even if nothing was
   * read. Default: `read`, with its limit.
   */
  readStream?(
    path: string,
    opts: DriverCallOptions & { start: number; length?: number },
  ): Promise<AsyncIterable<Uint8Array> | null>;
  /** Like `write`, for a file of any size. If the source throws, nothing changes, and the call rejects with that error. Default: `write`, with a limit. */
  writeStream?(file: DriverFileStream, opts?: DriverCallOptions): Promise<void>;
  /** Unpack a tar stream below `path`, which is made if absent. Links and names that lead outside are `path_confinement`. */
  importTree(tar: AsyncIterable<Uint8Array>, path: string, opts?: DriverCallOptions): Promise<void>;
  /** The tree below `path` as a tar stream. Absent is `not_found`. The reader treats the stream as untrusted. */
  exportTree(path: string): AsyncIterable<Uint8Array>;
}

/**
 * What every backend implements. Each path it receives is absolute, normalised, free of NUL and lexically inside `workDir`. The driver must confine
 * symbolic links to `workDir` (`path_confinement`), even while commands swap them. No method is called after `close`. Errors are `SandboxError`s
 * with the codes named at each method.
 */
export interface Driver extends FileCalls {
  readonly backend: string;
  readonly id: string;
  readonly workDir: string;
  readonly capabilities: Capabilities;
  /** Host path of the work directory, if the host has it. Commands can write there: treat its content as untrusted. */
  readonly hostDir?: string;
  /** The environment that every command starts from: PATH, HOME, LANG and the like. */
  readonly baseEnv: Readonly<Record<string, string>>;
  /**
   * The file calls for any absolute path that a command could use, with the rights of a command: its user, its mounts, its links. A link of `/proc`
   * to what a process has open is not followed (`invalid_path`). Needed where `capabilities.paths` has `sandbox`.
   */
  readonly anywhere?: FileCalls;
  /** Set by the portable part. Call it to report something the user should know that is not a failure. */
  onWarning?: (message: string) => void;
  /** Set by the portable part. Call it when the sandbox is lost for good: what this process holds open for it is then closed. */
  onLost?: () => void;
  /** Start a command. A missing program is a process that exits with 127 and says so on stderr; a missing `cwd` is `not_found`. */
  start(spec: StartSpec): Promise<DriverProcess>;
  /** Whether `start` accepts a `service`. Default false. */
  readonly startsServices?: boolean;
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
  /** The URL that the service has for a port of the sandbox. Undefined, or absent: it is reached through `connect`. */
  url?(port: number): Promise<string | undefined>;
  /**
   * Connect to a server in the sandbox: on 127.0.0.1, else on ::1, and nowhere else. `unavailable` if nobody listens. `signal` is aborted when
   * nobody needs the connection any more before it is made.
   */
  connect?(port: number, signal: AbortSignal): Promise<DriverConnection>;
  /** Whether a server in the sandbox accepts connections on this port within `timeout` milliseconds. */
  waitForPort?(port: number, timeout: number, signal: AbortSignal): Promise<boolean>;
  /**
   * Let the sandbox reach these hosts, too, until the window is closed. The recorded rule stays as it is: a sandbox that is reopened, forked or
   * restored has no window, and one whose owner dies has none either. Absent: the network can't be closed again.
   */
  openNetwork?(allow: readonly string[]): Promise<NetworkWindow>;
  /**
   * Apply other rules, `"none"` or a list of names, and have `SandboxEntry.saveNetwork` record them first. Cut what they don't allow. Gives the
   * variables that commands need from now on, besides `baseEnv`. Needed where `capabilities.liveNetwork` is true.
   */
  setNetwork?(network: NetworkPolicy): Promise<{ readonly env: Readonly<Record<string, string>> }>;
  /**
   * Use other secrets, which were checked, and have `SandboxEntry.saveSecrets` record them first: all of them, or nothing changes. Gives the variables
   * that commands need from now on, besides `baseEnv`, and the names of those that they must not have any more. Needed where `capabilities.secrets` is
   * true.
   */
  setSecrets?(
    secrets: Readonly<Record<string, SecretRule>>,
    signal: AbortSignal,
  ): Promise<{ readonly env: Readonly<Record<string, string>>; readonly gone: readonly string[] }>;
  /**
   * End everything that runs, and free what this process holds. Recorded resources are removed afterwards by `Backend.removeResource`, or left for
   * `Backend.reopen` if the sandbox is kept. Throws if something could not be ended; may be called again.
   */
  close(): Promise<void> | Promise<PendingRemoval | undefined>;
}
