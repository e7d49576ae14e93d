import type {
  Capabilities,
  Changes,
  ExecOptions,
  ExecResult,
  FileStat,
  Limits,
  Mount,
  NetworkPolicy,
  ProcessInfo,
  SandboxEvent,
  SandboxProcess,
  SpawnOptions,
} from "../../contracts/types.js";

/** Default per-operation timeout: 10 minutes. */
export const DEFAULT_OPERATION_TIMEOUT = 600_000;
/** Default per-run timeout: 60 minutes. */
export const DEFAULT_RUN_TIMEOUT = 3_600_000;
/** How long the output of a finished command is still read when a background child holds it open. */
export const MAX_DRAIN = 2_000;

/** Options of the Daytona backend. */
export interface DaytonaOptions {
  /** Default: the variable DAYTONA_API_KEY. */
  apiKey?: string;
  /** https, or http on loopback. Default: the variable DAYTONA_API_URL, else https://app.daytona.io/api. */
  apiUrl?: string;
  /** Region. Default: the variable DAYTONA_TARGET, else `us`. */
  target?: string;
  /** Default `daytona-medium`. Excludes the option `image`. */
  snapshot?: string;
  /** Whole cores and GiB. With `image` the sandbox is made so; with a snapshot it is resized. */
  resources?: { cpu?: number; memory?: number; disk?: number };
  /** Minutes without activity after which the service stops the sandbox; while it is open here, it is kept awake. Default 30. */
  autoStopMinutes?: number;
  /** Minutes after which the service deletes the sandbox, whatever happens. Default 1440; 0 is never. */
  ttlMinutes?: number;
  /** A client of `@daytona/sdk`, or of `@daytonaio/sdk`, instead of one that is made here. It stays the caller's. */
  client?: unknown;
}
/** What only containers have. */
export interface DockerOptions {
  /** The engine, as DOCKER_HOST names it. Default: DOCKER_HOST, then the Docker context, then the engine of this machine. */
  host?: string;
  /** The name of a Docker context. */
  context?: string;
  /** A folder with `ca.pem`, `cert.pem` and `key.pem`, for an engine that speaks TLS. */
  certPath?: string;
  /** Absolute path of the work directory; made when absent. Default `/workspace`. */
  workDir?: string;
  /** User of every command: `name`, `uid` or either with `:group`. Default: the image's. */
  user?: string;
  /** What the container calls itself. */
  hostname?: string;
  /** Whether an image that the engine does not have is pulled. Default `missing`. */
  pull?: "missing" | "never";
  /** How the agent gets into the container. Default: `bind` for an engine of this machine, `volume` for a remote one. */
  agent?: "bind" | "volume";
  /** What opens the walls of a container. Each one has to be named. */
  unsafe?: {
    /** Take `mounts`: paths of the engine's machine become visible. */
    mounts?: boolean;
    /** Everything that the machine can do, the container can. */
    privileged?: boolean;
    /** The engine's socket inside: whoever has it has the machine. */
    dockerSocket?: boolean;
    hostNetwork?: boolean;
    hostPid?: boolean;
    hostIpc?: boolean;
    /** Paths of devices. */
    devices?: readonly string[];
    /** Commands keep these capabilities, named as Docker does, for example `NET_ADMIN`. */
    capabilities?: readonly string[];
  };
}
/** What only the Vercel backend knows. Credentials: all three, or none of them and those of the environment. */
export interface VercelOptions {
  token?: string;
  teamId?: string;
  projectId?: string;
  /** Legacy runtime, for example `python3.13`. Excludes `image`. */
  runtime?: string;
  /** How long the machine may stand idle, in milliseconds; extended while something runs. Default 300 000. */
  timeout?: number;
  /** Ports that are opened from the start; `url` opens others when they are asked for. At most 15 in all. */
  ports?: readonly number[];
  /** Default `iad1`. */
  region?: string;
  /** Milliseconds after which the service deletes a snapshot, 0 for never. Default: as the service says. */
  snapshotExpiration?: number;
  /** What calls the service. Default the global one. */
  fetch?: typeof globalThis extends { fetch: infer Fetch } ? Fetch : unknown;
  /** The module `@vercel/sandbox`, where it shall not be imported by its name. */
  sdk?: unknown;
}
/** A container beside a Dagger sandbox, reached from inside by its host name. */
export interface DaggerService {
  image: string;
  /** Default: what the image says. */
  args?: readonly string[];
  env?: Readonly<Record<string, string>>;
  /** The sandbox starts once all of them answer; `url` reaches them from the host. */
  ports?: readonly number[];
}

/** What only the Dagger backend knows. */
export interface DaggerOptions {
  /** Path of the `dagger` program. Default: `_EXPERIMENTAL_DAGGER_CLI_BIN`, else the one in PATH. */
  cli?: string;
  /** A session that is open already. Default: `DAGGER_SESSION_PORT` and `DAGGER_SESSION_TOKEN`, else one is started. */
  session?: { port: number; token: string };
  /** Commands that prepare the image. Only these are answered from the engine's cache. */
  setup?: readonly (readonly string[])[];
  /** By host name. */
  services?: Readonly<Record<string, DaggerService>>;
  /** Name of a variable to where Dagger finds its value: `env://`, `file://`, `cmd://` and the like. */
  secrets?: Readonly<Record<string, string>>;
  /**
   * How long a step of the graph stays open for the next operation, in milliseconds. 0: each operation is a step of its
   * own, in the graph when its call returns. Default 100.
   */
  linger?: number;
  /** The module `@dagger.io/dagger`, where it is not to be imported by its name. */
  sdk?: unknown;
}

/** How a sandbox is made. An option that the backend cannot keep is `unsupported`, before anything is created. */
export interface SandboxOptions {
  /** Source repository: a path, relative to the process's directory, or a URL. */
  repo?: string;
  /** Branch of the sandbox; created from HEAD when it does not exist. Needs `repo`. */
  branch?: string;
  /** A directory of the user's to work in. Never removed; a `.git` in it is read-only inside. Excludes `repo`. */
  baseDir?: string;
  /** How the files of `repo` get in. Default `worktree`. */
  workspace?: "worktree" | "overlay" | "copy";
  /** Container or machine image, where the backend has one. */
  image?: string;
  /** Reopen a kept sandbox. Excludes every option that creates one. */
  id?: string;
  /** Leave the files when the sandbox is torn down, to be reopened by `id`. Default false. */
  keep?: boolean;
  /** Default deadline of one operation, also of opening the sandbox. Default 600 000. */
  operationTimeout?: number;
  /** Deadline of a whole harness run. Default 3 600 000. */
  runTimeout?: number;
  /** Default of `ExecOptions.maxOutput`. */
  maxOutput?: number;
  /** Environment of every command. */
  env?: Readonly<Record<string, string>>;
  /** Exact program names that may be started; anything else is `command_not_allowed`. Absent: all. */
  allow?: readonly string[];
  /** Default `none` wherever the backend can keep it. */
  network?: NetworkPolicy;
  limits?: Limits;
  /** Default `required`: no isolation, no sandbox (`no_isolation`). `none` must be asked for. */
  isolation?: "required" | "none";
  /** Host paths made visible inside. */
  mounts?: readonly Mount[];
  /** Aborts the creation. */
  signal?: AbortSignal;
  onEvent?(event: SandboxEvent): void;
  githubToken?: string;
  /**
   * Filters that may run on the host when the files of `repo` are checked out, such as `lfs`, as your own git configuration defines them. Those
   * that a repository defines never run. Default: none.
   */
  gitFilters?: readonly string[];
  /** Object stores outside `repo` that it may borrow from; they become visible inside, read-only. Default: none. */
  gitAlternates?: readonly string[];
  daytona?: DaytonaOptions;
  docker?: DockerOptions;
  vercel?: VercelOptions;
  dagger?: DaggerOptions;
}

/** A file to be put into a sandbox. */
export interface FileUpload {
  path: string;
  content: string | Uint8Array;
  /** Permission bits. Default 0o644. */
  mode?: number;
}

/**
 * A place to run commands and keep files that is really confined.
 *
 * Paths are absolute inside `workDir` or relative to the current work directory. One that leads outside, by `..` or by a
 * symbolic link, is `path_confinement`. After `teardown` every call but `teardown` is `closed`.
 */
export interface Sandbox extends AsyncDisposable {
  readonly id: string;
  readonly backend: string;
  /** Absolute path of the work directory, as the inside sees it. */
  readonly workDir: string;
  readonly capabilities: Capabilities;
  /** Run a program to its end. */
  exec(opts: ExecOptions): Promise<ExecResult>;
  /** Run a script by a shell, `/bin/sh` by default. */
  shell(script: string, opts?: Omit<ExecOptions, "argv"> & { shellPath?: string }): Promise<ExecResult>;
  /** Start a program that goes on. */
  spawn(opts: SpawnOptions): Promise<SandboxProcess>;
  /** What `spawn` started and has not ended. */
  processes(): Promise<ProcessInfo[]>;
  /** Write several files, making directories as needed. */
  uploadFiles(files: readonly FileUpload[]): Promise<void>;
  /** Write one file, whole or not at all. */
  writeFile(path: string, content: string | Uint8Array, opts?: { mode?: number }): Promise<void>;
  writeFiles(files: Readonly<Record<string, string | Uint8Array>>): Promise<void>;
  /** The file as UTF-8; null when it does not exist. A FIFO, socket, device or directory is `not_regular_file`. */
  readFile(path: string): Promise<string | null>;
  /** As `readFile`, exact bytes. */
  readBytes(path: string): Promise<Uint8Array | null>;
  /** Null when it does not exist. */
  stat(path: string): Promise<FileStat | null>;
  /** Sorted names. A missing directory is `not_found`. */
  listDirectory(path?: string): Promise<string[]>;
  /** Whether there was a file to delete. A directory is `not_regular_file`. */
  deleteFile(path: string): Promise<boolean>;
  /** With its parents; one that exists is no error. */
  makeDirectory(path: string): Promise<void>;
  /** The directory that relative paths and commands start from. */
  setWorkdir(path: string): Promise<void>;
  /**
   * Copy a directory out, onto a host path that is absent or empty; returns the absolute host path. Links that lead out of the
   * directory are left out, and told of by a `warning`; absolute ones into it lead into the copy.
   */
  exportDirectory(sandboxPath: string, hostPath: string): Promise<string>;
  /** Copy a host directory in, over what is there. */
  refreshFromHost(hostPath: string, sandboxPath: string): Promise<void>;
  /** Save the files; returns an id that outlives the sandbox. */
  snapshot(): Promise<string>;
  /** Bring the files back to a snapshot. */
  restore(id: string): Promise<void>;
  /** Independent sandboxes with the files as they are now. */
  fork(): Promise<Sandbox>;
  fork(opts: { count: number }): Promise<Sandbox[]>;
  /** What differs from the start. */
  changes(): Promise<Changes>;
  /** Push the files as they are to the branch of the remote. */
  pushBranch?(branch: string, token: string, opts?: PushOptions): Promise<{ pushed: boolean; error?: string }>;
  defaultBranch?(): Promise<string>;
  url?(port: number): Promise<string>;
  /** Idempotent, never throws. What could not be removed stays in the ledger and is a `leak` event. */
  teardown(): Promise<void>;
}

/** How a branch is pushed. */
export interface PushOptions {
  /** Of the commit of whatever is not committed yet. Default: one that names the sandbox. */
  message?: string;
  /**
   * The server that the token is for, such as `https://github.com`. A remote elsewhere is `permission_denied` and never sees the token. Default:
   * wherever `origin` is, as the repository says; set it when the repository may come from somebody else.
   */
  server?: string;
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
 * after `destroy`. Errors are `SandboxError`s with the code that each method names.
 */
export interface Driver {
  readonly backend: string;
  readonly id: string;
  readonly workDir: string;
  readonly capabilities: Capabilities;
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
  /** Give everything back, or leave the files when `keep`. Throws what could not be removed; callable again. */
  destroy(): Promise<void>;
}

/** Most that one `refreshFromHost`, `restore` or `fork` puts into a sandbox: 8 GiB. */
export const MAX_IMPORT_BYTES: number = 8 * 1024 ** 3;
/** Largest file that `readFile` and `readBytes` return; larger ones go through `exportDirectory` or a stream. */
export const MAX_FILE_BYTES: number = 256 * 1024 * 1024;
