export type {
  BlockedAnswer,
  BlockedRequest,
  NetworkEvent,
  NetworkPolicy,
  NetworkRule,
  NetworkRules,
  NetworkWindow,
  SecretRule,
  SecretSource,
} from "./network.js";

/** The shared types. Times are milliseconds and sizes are bytes unless a name says otherwise. */

/** One command. The program gets exactly these arguments; no shell sees them. */
export interface ExecOptions {
  /** Program and arguments, never empty. The program is looked up in the sandbox's PATH. */
  argv: readonly string[];
  /** Absolute inside `workDir`, or relative to the current work directory. A missing directory is `not_found`. */
  cwd?: string;
  /** Added to the sandbox's environment. Keys must match `[A-Za-z_][A-Za-z0-9_]*`; others are `invalid_argument`. */
  env?: Readonly<Record<string, string>>;
  /** Standard input of the command. Default: empty and closed. */
  stdin?: string | Uint8Array | AsyncIterable<Uint8Array>;
  /** Deadline in milliseconds. Default: the sandbox's `operationTimeout`. */
  timeout?: number;
  /** How long after SIGTERM at the deadline SIGKILL follows, in milliseconds. Default 0: SIGKILL at once, no SIGTERM. */
  killGrace?: number;
  /** Bytes to keep per stream: its head and its tail, with a marker between them. Default 1 MiB. */
  maxOutput?: number;
  /** Also return the kept bytes unchanged. Default false. */
  raw?: boolean;
  /** Reject with `command_failed` if the command exits with another code than 0 or reaches its deadline. Default false: both are results. */
  check?: boolean;
  /**
   * `combined`: stdout and stderr are one pipe, so their order is true. All output is then on `stdout`, `stderr` is empty, and `onStderr` is
   * `invalid_argument`. `unsupported` where `capabilities.combinedOutput` is not true. Default `separate`.
   */
  output?: "separate" | "combined";
  /** User to run as. `unsupported` where `capabilities.user` is false. */
  user?: string;
  /** Aborting it kills the whole tree and rejects with `aborted`. */
  signal?: AbortSignal;
  /** Called with each chunk of output as it comes. It is awaited, so a slow consumer slows the command down. */
  onStdout?(chunk: Uint8Array): void | Promise<void>;
  /** Like `onStdout`, for standard error. */
  onStderr?(chunk: Uint8Array): void | Promise<void>;
}

/** The result of one command. A non-zero exit code and a timeout are results, not errors, unless `check` is set. */
export interface ExecResult {
  /** 128+n if signal n ended it; 127 if the program is missing, 126 if it is not executable, each with a line on stderr. */
  exitCode: number;
  /** Name of the signal that ended it, for example `SIGKILL`. */
  signal?: string;
  /** UTF-8, cut only between characters. */
  stdout: string;
  /** UTF-8, cut only between characters. */
  stderr: string;
  /** Whether part of the stream was left out. */
  truncated: { stdout: boolean; stderr: boolean };
  /** How many bytes the command wrote, kept or not. */
  bytes: { stdout: number; stderr: number };
  /** The kept bytes, if `raw` was set. */
  raw?: { stdout: Uint8Array; stderr: Uint8Array };
  durationMs: number;
  /** Whether the deadline ended it. */
  timedOut: boolean;
  /** True if the memory limit ended it. Absent if the backend can't know. */
  oomKilled?: boolean;
}

/** A long-running process: a server, a watcher, a terminal. It has no deadline unless `timeout` is set. */
export interface SpawnOptions extends Omit<ExecOptions, "stdin" | "maxOutput" | "raw" | "check"> {
  /** Default `none`: empty and closed. */
  stdin?: "pipe" | "none";
  /** Run on a terminal of this size. All output is then on `stdout`. */
  pty?: { cols: number; rows: number };
  /**
   * Never wait for a reader. The last MiB of output is kept and read with `Sandbox.process(id).read`. `stdout` and `stderr` follow it, and fail with
   * `limit_exceeded` if they fall behind further. `wait` resolves once all output is there. Excludes `onStdout` and `onStderr`. Default false: a process
   * that nobody reads is slowed down.
   */
  background?: boolean;
  /**
   * Run the process beside the sandbox, from a copy of its current files, and make it reachable from the sandbox by this host name. It is ready
   * once all ports answer. Its writes don't reach the sandbox. Only Dagger has it; other backends refuse it with `unsupported`, because a server is
   * reachable on the sandbox's loopback there.
   */
  service?: { hostname: string; ports: readonly number[] };
}

/** How a process ended. */
export interface ProcessExit {
  exitCode: number;
  signal?: string;
  timedOut: boolean;
  durationMs: number;
  /** True if the memory limit ended it. Absent if the backend can't know. */
  oomKilled?: boolean;
}

/** A process started by `spawn`. Disposing it kills the whole tree. */
export interface SandboxProcess extends AsyncDisposable {
  readonly id: string;
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  /** Present with `stdin: "pipe"` or a pty. */
  readonly stdin?: WritableStream<Uint8Array>;
  /** Send a signal. Default SIGTERM. SIGKILL kills the whole tree. No error if the process has ended. */
  kill(signal?: string): Promise<void>;
  /** Resolves once the process and everything it started are gone. */
  wait(): Promise<ProcessExit>;
  /** Present with a pty. */
  resize?(cols: number, rows: number): Promise<void>;
}

/** The two outputs of a process. With a pty and with combined output everything is on `stdout`. */
export type ProcessStream = "stdout" | "stderr";

/** What to read of a process's output. */
export interface ReadOutputOptions {
  /** The `cursor` of the last read of the same `stream`: how many bytes of it came before. Default 0. Beyond the end: `invalid_argument`. */
  cursor?: number;
  /** Default: both, in the order in which they came. */
  stream?: ProcessStream;
  /** Return at most so many bytes. Default: all that is kept. */
  maxBytes?: number;
  /** If nothing came after the cursor, wait so many milliseconds for something, or for the end. At most an hour. Default 0. */
  wait?: number;
  /** Aborting it rejects a read that waits, with `aborted`. */
  signal?: AbortSignal;
}

/** A part of a process's output. */
export interface ProcessOutput {
  data: Uint8Array;
  /** Where the next read goes on. */
  cursor: number;
  /** How many bytes between the asked cursor and `data` are gone, because newer ones took their place. */
  missed: number;
  /** Whether nothing comes after `cursor`: the process has ended, and this was the rest. */
  ended: boolean;
}

/**
 * A process that `spawn` started, for everybody who has the sandbox open. Its last MiB of output, both streams together, stays readable until ten
 * minutes after its end, or until 64 others have ended. Of a process without `background`, that is what its owner has read.
 */
export interface ProcessHandle {
  readonly id: string;
  readonly argv: string[];
  /** ISO 8601. */
  readonly startedAt: string;
  /** As of now, like `exit`. */
  readonly state: "running" | "ended";
  /** Absent while it runs, and if its end can't be known because the backend was lost. */
  readonly exit?: ProcessExit | undefined;
  /** Read its output from a cursor. */
  read(opts?: ReadOutputOptions): Promise<ProcessOutput>;
  /**
   * Use it as if you had started it: its input, its output from now on, signals and its end. Disposing what you get leaves the process running. Its
   * streams follow the kept output, and fail with `limit_exceeded` if they fall behind further.
   */
  attach(): Promise<SandboxProcess>;
  /** Like `SandboxProcess.kill`. */
  kill(signal?: string): Promise<void>;
  /** Like `SandboxProcess.wait`. */
  wait(): Promise<ProcessExit>;
}

/** What a path is. */
export interface FileStat {
  type: "file" | "directory" | "symlink" | "other";
  size: number;
  /** Permission bits, for example 0o644. */
  mode: number;
  mtimeMs: number;
}

/** One entry of `listDirectory` with `details`. A symbolic link is described itself. */
export interface DirectoryEntry extends FileStat {
  name: string;
}

/** The content of a file to write. A stream can have any size. */
export type FileContent = string | Uint8Array | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

/** Options of every file call. */
export interface FileCallOptions {
  /** Aborting it cancels the call, which rejects with `aborted` at once. */
  signal?: AbortSignal;
}

/** Options of a call that copies a host directory in. */
export interface UploadOptions extends FileCallOptions {
  /** Whether to copy a file, a link or a directory, given by its path below the directory. Default: everything is copied. */
  select?(path: string): boolean;
}

/** Options of a call that writes a file. */
export interface WriteFileOptions extends FileCallOptions {
  /** Permission bits. Default: a file that is replaced keeps its own, and a new one has 0o644. */
  mode?: number;
}

/** Options of `readStream`. */
export interface ReadStreamOptions extends FileCallOptions {
  /** Position of the first byte. Default 0. */
  start?: number;
  /** Position after the last byte, as in `slice`. Default: the end of the file. */
  end?: number;
}

/** Something that a sandbox may lack, under the name that `Capabilities.reasons` has for it. */
export type LackingCapability =
  | `limits.${keyof Limits}`
  | `network.${"none" | "full" | "allow"}`
  | "liveNetwork"
  | "networkRules"
  | "snapshot"
  | "fork"
  | "pty"
  | "user"
  | "workDir"
  | "paths"
  | "combinedOutput"
  | "secrets"
  | "ports"
  | "git"
  | "keep";

/** What a backend really enforces. Shown by `doctor`, and checked before anything is created. */
export interface Capabilities {
  isolation: "none" | "namespaces" | "container" | "gvisor" | "microvm" | "remote";
  /**
   * What is gone when a call ends. `complete`: everything it started, in any way. `descendants`: every process that descends from it, even in its
   * own session and without a parent; but not one that another program started for it, or that switched to a user who can't be signalled.
   * `best-effort`: what stayed in its process group.
   */
  killTree: "complete" | "descendants" | "best-effort";
  /** The kinds of network rule that can be enforced. */
  network: readonly ("none" | "full" | "allow")[];
  /** Whether the connections of a sandbox pass through this process: `setNetwork`, `onBlocked` and `audit` need it. Absent: no. */
  liveNetwork?: boolean;
  /** Whether `network` can have rules about requests, private addresses and `deny`. Absent: only names. */
  networkRules?: boolean;
  /** The limits that can be enforced. */
  limits: readonly ("memory" | "cpus" | "pids" | "disk")[];
  /** `crash-consistent`: files may change while they are saved. `none`: `snapshot` and `restore` are `unsupported`. */
  snapshot: "consistent" | "crash-consistent" | "none";
  /** How `fork` copies the files. `none`: it is `unsupported`. */
  fork: "copy-on-write" | "copy" | "none";
  /** Whether `spawn` can use a terminal. */
  pty: boolean;
  /** Whether commands can run as another user. */
  user: boolean;
  /** Whether the option `workDir` works. Absent: no. */
  workDir?: boolean;
  /** Which values of the option `paths` can be enforced. Absent: only `workdir`. */
  paths?: readonly ("workdir" | "sandbox")[];
  /** Whether `output: "combined"` works. Absent: no. */
  combinedOutput?: boolean;
  /** Whether the option `secrets` works. Absent: no. */
  secrets?: boolean;
  /** Whether `url` works. */
  ports: boolean;
  /** Whether `pushBranch` and `defaultBranch` work. */
  git: boolean;
  /** What a kept sandbox brings back. `all`: with `keep: "all"` also `$HOME` and `/tmp`. Absent: only the files of the work directory. */
  keep?: "files" | "all";
  /**
   * `no-directories-of-the-base`: in an overlay without privileges, rename(2) of a checked-out directory fails with EXDEV; `mv` copies instead.
   * Files and new directories are renamed as usual. Absent: unknown.
   */
  renames?: "all" | "no-directories-of-the-base";
  /** Why something is missing, for everything that is. An `unsupported` error gives the same reason. */
  reasons?: Readonly<Partial<Record<LackingCapability, string>>>;
}

/** What has changed since the sandbox was made. */
export interface Changes {
  patch: string;
  files: { path: string; status: "added" | "modified" | "deleted" | "renamed" }[];
}

/** Upper bounds. Each one is enforced or refused with `unsupported`. */
export interface Limits {
  /** Bytes. */
  memory?: number;
  /** Cores; fractions allowed. */
  cpus?: number;
  /** Processes and threads at the same time, in the whole sandbox. Default 4096, where it can be enforced; none without isolation. */
  pids?: number;
  /** Bytes. */
  disk?: number;
}

/** A host path to make visible in the sandbox. */
export interface Mount {
  /** Host path. Relative paths start at the current directory of the process. */
  source: string;
  /** Absolute path in the sandbox. Default: the same path as on the host. */
  target?: string;
  /** Whether commands may write to it. Default false. */
  writable?: boolean;
}

/** Something that happened to a sandbox. Secrets are redacted. */
export interface SandboxEvent {
  /** `progress`: something that takes time while the sandbox is opened. `leak`: something could not be removed and stays in the ledger. */
  type: "progress" | "created" | "exec" | "exit" | "warning" | "snapshot" | "teardown" | "leak";
  sandboxId: string;
  backend: string;
  message: string;
  /** ISO 8601. */
  time: string;
}
