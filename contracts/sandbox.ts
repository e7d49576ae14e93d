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
} from "./types.js";

declare global {
  /**
   * Options of single backends, each under the backend's name. A backend adds its own: `declare global { interface GloveboxBackendOptions {
   * folder?: FolderOptions } }`.
   */
  interface GloveboxBackendOptions {}
}

/** Options of single backends, each under the backend's name. */
export interface BackendOptions extends GloveboxBackendOptions {}

/** The backends whose options the compiler knows. */
export type BackendName = keyof BackendOptions;

/** Default timeout of one operation: 10 minutes, in milliseconds. */
export const DEFAULT_OPERATION_TIMEOUT = 600_000;
/** Default timeout of a run: 60 minutes, in milliseconds. */
export const DEFAULT_RUN_TIMEOUT = 3_600_000;
/** How long the output of a finished command is still read, in milliseconds, while a background child keeps it open. */
export const MAX_DRAIN = 2_000;

/** The most that one `refreshFromHost`, `restore` or `fork` copies into a sandbox: 8 GiB. */
export const MAX_IMPORT_BYTES: number = 8 * 1024 ** 3;
/** The largest file that `readFile` and `readBytes` return: 256 MiB. Use `exportDirectory` or a stream for larger ones. */
export const MAX_FILE_BYTES: number = 256 * 1024 * 1024;

/** How to make a sandbox. An option that the backend can't enforce is refused with `unsupported` before anything is created. */
export interface SandboxOptions extends BackendOptions {
  /** Source repository: a URL or a path. Relative paths start at the current directory of the process. */
  repo?: string;
  /** Branch of the sandbox. It is created from HEAD if it does not exist. Needs `repo`. */
  branch?: string;
  /** A directory of yours to work in. It is never removed, and its `.git` is read-only in the sandbox. Excludes `repo`. */
  baseDir?: string;
  /** How the files of `repo` get into the sandbox. Default `worktree`. */
  workspace?: "worktree" | "overlay" | "copy";
  /** Container or machine image, if the backend uses images. */
  image?: string;
  /** Id of a kept sandbox to reopen. Excludes every option that creates a sandbox. */
  id?: string;
  /** Keep the files when the sandbox is torn down, so that you can reopen it by `id`. Default false. */
  keep?: boolean;
  /** Default deadline of one operation in milliseconds, including opening the sandbox. Default 600 000. */
  operationTimeout?: number;
  /** Deadline of a whole harness run in milliseconds. Default 3 600 000. */
  runTimeout?: number;
  /** Default of `ExecOptions.maxOutput`, in bytes. */
  maxOutput?: number;
  /** Environment variables of every command. */
  env?: Readonly<Record<string, string>>;
  /** Exact names of the programs that may be started; any other is `command_not_allowed`. Absent: all. */
  allow?: readonly string[];
  /** Default `none` wherever the backend can enforce it. */
  network?: NetworkPolicy;
  /** Default: none. A limit that the backend can't enforce is `unsupported`. */
  limits?: Limits;
  /** Default `required`: without isolation, opening fails with `no_isolation`. `none` runs commands without isolation. */
  isolation?: "required" | "none";
  /** Host paths to make visible in the sandbox. */
  mounts?: readonly Mount[];
  /** Abort it to cancel opening the sandbox. */
  signal?: AbortSignal;
  /** Called with each event. What it throws is ignored. */
  onEvent?(event: SandboxEvent): void;
  /** Token for a private `repo`. Commands never see it; errors and events redact it. */
  githubToken?: string;
  /**
   * Git filters, such as `lfs`, that may run on the host when the files of `repo` are checked out, as your own git configuration defines them.
   * Filters that a repository defines never run. Default: none.
   */
  gitFilters?: readonly string[];
  /** Object stores outside `repo` that it may borrow from. They become visible in the sandbox, read-only. Default: none. */
  gitAlternates?: readonly string[];
}

/** A file to write into a sandbox. */
export interface FileUpload {
  /** Absolute inside `workDir`, or relative to the current work directory. */
  path: string;
  content: string | Uint8Array;
  /** Permission bits. Default 0o644. */
  mode?: number;
}

/**
 * A confined place to run commands and store files.
 *
 * Paths are absolute inside `workDir`, or relative to the current work directory. A path that leads outside, by `..` or by a symbolic link, is
 * `path_confinement`. After `teardown` every call except `teardown` is `closed`.
 */
export interface Sandbox extends AsyncDisposable {
  /** Its id in the ledger. `openSandbox({ id })` reopens a kept sandbox. */
  readonly id: string;
  /** Name of its backend. */
  readonly backend: string;
  /** Absolute path of the work directory, as commands see it. */
  readonly workDir: string;
  /** What its backend really enforces. */
  readonly capabilities: Capabilities;
  /** Run a program and wait for it to end. */
  exec(opts: ExecOptions): Promise<ExecResult>;
  /** Run a script with a shell. Default shell: `/bin/sh`. */
  shell(script: string, opts?: Omit<ExecOptions, "argv"> & { shellPath?: string }): Promise<ExecResult>;
  /** Start a long-running program. */
  spawn(opts: SpawnOptions): Promise<SandboxProcess>;
  /** The processes that `spawn` started and that have not ended. */
  processes(): Promise<ProcessInfo[]>;
  /** Write several files, and make directories as needed. */
  uploadFiles(files: readonly FileUpload[]): Promise<void>;
  /** Write one file, whole or not at all. */
  writeFile(path: string, content: string | Uint8Array, opts?: { mode?: number }): Promise<void>;
  /** Write several files, given as path and content. */
  writeFiles(files: Readonly<Record<string, string | Uint8Array>>): Promise<void>;
  /** The file as UTF-8, or null if it does not exist. A FIFO, socket, device or directory is `not_regular_file`. */
  readFile(path: string): Promise<string | null>;
  /** Like `readFile`, but returns the exact bytes. */
  readBytes(path: string): Promise<Uint8Array | null>;
  /** What a path is, or null if it does not exist. */
  stat(path: string): Promise<FileStat | null>;
  /** Sorted names. A missing directory is `not_found`. */
  listDirectory(path?: string): Promise<string[]>;
  /** Returns whether there was a file to delete. A directory is `not_regular_file`. */
  deleteFile(path: string): Promise<boolean>;
  /** Make a directory and its parents. An existing one is fine. */
  makeDirectory(path: string): Promise<void>;
  /** Set the directory that relative paths and commands start from. */
  setWorkdir(path: string): Promise<void>;
  /**
   * Copy a directory out to a host path that is absent or empty; returns the absolute host path. Links that lead out of the directory are left out
   * and reported as a `warning`. Absolute links into the directory point into the copy.
   */
  exportDirectory(sandboxPath: string, hostPath: string): Promise<string>;
  /** Copy a host directory in, over what is there. */
  refreshFromHost(hostPath: string, sandboxPath: string): Promise<void>;
  /** Save the files. Returns an id that outlives the sandbox. `unsupported` where `capabilities.snapshot` is `none`. */
  snapshot(): Promise<string>;
  /** Reset the files to a snapshot. An unknown id is `not_found`; a snapshot of another repository is `conflict`. */
  restore(id: string): Promise<void>;
  /** Make independent sandboxes with the files as they are now. `unsupported` where `capabilities.fork` is `none`. */
  fork(): Promise<Sandbox>;
  fork(opts: { count: number }): Promise<Sandbox[]>;
  /** What has changed since the sandbox was made. */
  changes(): Promise<Changes>;
  /** Push the current files to a branch of the remote. `unsupported` without a repository. */
  pushBranch(branch: string, token: string, opts?: PushOptions): Promise<{ pushed: boolean; error?: string }>;
  /** The default branch of the remote. `unsupported` without a repository. */
  defaultBranch(): Promise<string>;
  /** The URL at which a port of the sandbox can be reached. `unsupported` where `capabilities.ports` is false. */
  url(port: number): Promise<string>;
  /** Close the sandbox. Idempotent; never throws. What can't be removed stays in the ledger and is reported as a `leak` event. */
  teardown(): Promise<void>;
}

/** How to push a branch. */
export interface PushOptions {
  /** Message of the commit with the uncommitted changes. Default: one that names the sandbox. */
  message?: string;
  /**
   * The server that the token is for, such as `https://github.com`. For a remote on another server the push is `permission_denied` and the token is
   * not sent. Default: the server of `origin`, as the repository names it. Set it if you don't trust the repository.
   */
  server?: string;
}
