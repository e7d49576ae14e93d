/** The shared nouns. Types only; times are milliseconds and sizes are bytes unless a name says otherwise. */

/** One command. The program is started with exactly these arguments; no shell ever sees them. */
export interface ExecOptions {
  /** Program and arguments. Never empty; the first element is looked up in the sandbox's PATH. */
  argv: readonly string[];
  /** Absolute inside `workDir`, or relative to the current work directory. Missing: `not_found`. */
  cwd?: string;
  /** Added to the sandbox's environment. Keys match `[A-Za-z_][A-Za-z0-9_]*`, else `invalid_argument`. */
  env?: Readonly<Record<string, string>>;
  /** What the command reads. Absent: empty and closed at once. */
  stdin?: string | Uint8Array | AsyncIterable<Uint8Array>;
  /** Deadline. Default: the sandbox's `operationTimeout`. */
  timeout?: number;
  /** At the deadline SIGTERM is sent first and SIGKILL this much later. Default 0: SIGKILL at once. */
  killGrace?: number;
  /** Bytes kept per stream, the head and the tail with a marker between. Default 1 MiB. */
  maxOutput?: number;
  /** Also give the kept bytes as they were. Default false. */
  raw?: boolean;
  /** User inside the sandbox. `unsupported` where `capabilities.user` is false. */
  user?: string;
  /** Abort kills the whole tree and rejects with `aborted`. */
  signal?: AbortSignal;
  /** Called with each piece of output as it comes; awaited, so a slow consumer slows the command down. */
  onStdout?(chunk: Uint8Array): void | Promise<void>;
  /** As `onStdout`, for standard error. */
  onStderr?(chunk: Uint8Array): void | Promise<void>;
}

/** What one command did. A non-zero exit and a timeout are results, never errors. */
export interface ExecResult {
  /** 128+n when signal n ended it; 127 program missing, 126 not executable, each with a line on stderr. */
  exitCode: number;
  /** Name of the ending signal, for example `SIGKILL`. */
  signal?: string;
  /** UTF-8, cut at character borders. */
  stdout: string;
  /** UTF-8, cut at character borders. */
  stderr: string;
  /** Whether something of the stream was left out. */
  truncated: { stdout: boolean; stderr: boolean };
  /** How much the command wrote, whatever was kept. */
  bytes: { stdout: number; stderr: number };
  /** The kept bytes, when `raw` was asked for. */
  raw?: { stdout: Uint8Array; stderr: Uint8Array };
  durationMs: number;
  timedOut: boolean;
  /** True when the memory limit ended it; absent when the backend cannot tell. */
  oomKilled?: boolean;
}

/** A long-running process: a server, a watcher, a terminal. It has no deadline unless `timeout` is given. */
export interface SpawnOptions extends Omit<ExecOptions, "stdin" | "maxOutput" | "raw"> {
  /** Default `none`: empty and closed. */
  stdin?: "pipe" | "none";
  /** Run on a terminal of this size. Output is then all on `stdout`. */
  pty?: { cols: number; rows: number };
  /**
   * Run it beside the sandbox, from a copy of its files as they are now, and reach it from inside by this host name; there once
   * all ports answer. What it writes stays with it. Dagger only, elsewhere `unsupported`: a server is on the loopback there.
   */
  service?: { hostname: string; ports: readonly number[] };
}

/** How a process ended. */
export interface ProcessExit {
  exitCode: number;
  signal?: string;
  timedOut: boolean;
  durationMs: number;
  /** True when the memory limit ended it; absent when the backend cannot tell. */
  oomKilled?: boolean;
}

/** A process started by `spawn`. Disposing it kills the tree. */
export interface SandboxProcess extends AsyncDisposable {
  readonly id: string;
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  /** Present when `stdin: "pipe"` or a pty was asked for. */
  readonly stdin?: WritableStream<Uint8Array>;
  /** Default SIGTERM. SIGKILL takes the whole tree. A process that has ended is no error. */
  kill(signal?: string): Promise<void>;
  /** Resolves once the process and all it started are gone. */
  wait(): Promise<ProcessExit>;
  /** Present with a pty. */
  resize?(cols: number, rows: number): Promise<void>;
}

/** One line of `processes()`. */
export interface ProcessInfo {
  id: string;
  argv: string[];
  /** ISO 8601. */
  startedAt: string;
}

/** What a path is. Symbolic links are described, not followed. */
export interface FileStat {
  type: "file" | "directory" | "symlink" | "other";
  size: number;
  /** Permission bits, for example 0o644. */
  mode: number;
  mtimeMs: number;
}

/** What a backend really keeps. Data: shown by `doctor`, checked before anything is created. */
export interface Capabilities {
  isolation: "none" | "namespaces" | "container" | "gvisor" | "microvm" | "remote";
  /**
   * What of a call is gone when the call is. `complete`: everything it started, whatever that did. `descendants`: every process
   * that descends from it, also in a session of its own and without a parent; not one that another program started for it,
   * or that became a user whom nobody here may signal. `best-effort`: what stayed in its process group.
   */
  killTree: "complete" | "descendants" | "best-effort";
  /** The kinds of network rule that can be kept. */
  network: readonly ("none" | "full" | "allow")[];
  /** The limits that can be kept. */
  limits: readonly ("memory" | "cpus" | "pids" | "disk")[];
  snapshot: "consistent" | "crash-consistent" | "none";
  fork: "copy-on-write" | "copy" | "none";
  pty: boolean;
  user: boolean;
  ports: boolean;
  git: boolean;
  /**
   * `no-directories-of-the-base`: in an overlay without privileges, rename(2) of a directory that was checked out fails
   * with EXDEV; `mv` copies instead. Files and new directories are renamed as usual. Absent: not known.
   */
  renames?: "all" | "no-directories-of-the-base";
}

/** What differs from the start of the sandbox. */
export interface Changes {
  patch: string;
  files: { path: string; status: "added" | "modified" | "deleted" | "renamed" }[];
}

/** Upper bounds; each one is enforced or refused with `unsupported`. */
export interface Limits {
  /** Bytes. */
  memory?: number;
  /** Cores; fractions allowed. */
  cpus?: number;
  /** Processes and threads at one time, in the whole sandbox. */
  pids?: number;
  /** Bytes. */
  disk?: number;
}

/**
 * `none`: loopback only. `full`: the host's network. `allow`: only these names: `host`, `host:port` or `*.host`. Tunnels to
 * them must carry TLS, unless the entry is `plain://host:port`.
 */
export type NetworkPolicy = "none" | "full" | { allow: string[] };

/** A host path made visible inside. */
export interface Mount {
  source: string;
  /** Absolute path inside. Default: the same path as outside. */
  target?: string;
  /** Default false. */
  writable?: boolean;
}

/** Something that a user may want to see happen. Secrets are redacted. */
export interface SandboxEvent {
  type: "created" | "exec" | "exit" | "warning" | "snapshot" | "teardown" | "leak";
  sandboxId: string;
  backend: string;
  message: string;
  /** ISO 8601. */
  time: string;
}
