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
   * The options that only one backend has, each under the backend's name. A backend adds its own:
   * `declare global { interface GloveboxBackendOptions { folder?: FolderOptions } }`.
   */
  interface GloveboxBackendOptions {}
}

/** The options that only one backend has, each under the backend's name. */
export interface BackendOptions extends GloveboxBackendOptions {}

/** The backends whose options are known to the compiler. */
export type BackendName = keyof BackendOptions;

/** Default per-operation timeout: 10 minutes. */
export const DEFAULT_OPERATION_TIMEOUT = 600_000;
/** Default per-run timeout: 60 minutes. */
export const DEFAULT_RUN_TIMEOUT = 3_600_000;
/** How long the output of a finished command is still read when a background child holds it open. */
export const MAX_DRAIN = 2_000;

/** Most that one `refreshFromHost`, `restore` or `fork` puts into a sandbox: 8 GiB. */
export const MAX_IMPORT_BYTES: number = 8 * 1024 ** 3;
/** Largest file that `readFile` and `readBytes` return; larger ones go through `exportDirectory` or a stream. */
export const MAX_FILE_BYTES: number = 256 * 1024 * 1024;

/** How a sandbox is made. An option that the backend cannot keep is `unsupported`, before anything is created. */
export interface SandboxOptions extends BackendOptions {
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
  /** Push the files as they are to the branch of the remote. `unsupported` without a repository. */
  pushBranch(branch: string, token: string, opts?: PushOptions): Promise<{ pushed: boolean; error?: string }>;
  /** The branch that the remote starts with. `unsupported` without a repository. */
  defaultBranch(): Promise<string>;
  /** Where a port of the sandbox is reached from outside. `unsupported` where `capabilities.ports` is false. */
  url(port: number): Promise<string>;
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
