import type {
  BlockedAnswer,
  BlockedRequest,
  Capabilities,
  Changes,
  DirectoryEntry,
  ExecOptions,
  ExecResult,
  FileCallOptions,
  FileContent,
  FileStat,
  Limits,
  Mount,
  NetworkPolicy,
  NetworkWindow,
  ProcessHandle,
  ReadStreamOptions,
  SandboxEvent,
  SandboxProcess,
  SecretRule,
  SpawnOptions,
  UploadOptions,
  WriteFileOptions,
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
/** Permission bits of a new file, unless others are asked for. */
export const NEW_FILE_MODE: number = 0o644;

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
  /**
   * Where the work directory is inside: an absolute path outside the system's folders, such as `/workspace`. Default: the backend's own place. Needs
   * `capabilities.workDir`; excludes `baseDir`.
   */
  workDir?: string;
  /**
   * How far `cwd`, `setWorkdir` and the file calls reach. `workdir`, the default: the work directory; a path that leads outside is
   * `path_confinement`. `sandbox`: whatever a command inside can reach, such as `/tmp` and `$HOME`, with its rights and nothing more; links resolve as
   * they do for a command, except those of `/proc` to what a process has open, which are `invalid_path`. `~` is a name like any other. Needs `sandbox`
   * in `capabilities.paths`. Snapshots, `changes` and pushes concern the work directory in both cases.
   */
  paths?: "workdir" | "sandbox";
  /** Container or machine image, if the backend uses images. Default: the backend's own. */
  image?: string;
  /**
   * Id or name of a snapshot: the new sandbox starts with its files, on its repository. One of another backend or of another `repo` is `conflict`.
   * Excludes `id` and `baseDir`.
   */
  snapshot?: string;
  /**
   * Id or name of a sandbox to open again: a kept one, or one that this process has open. Absent: `not_found`. Open in another process:
   * `conflict`. Excludes every option that creates a sandbox.
   */
  id?: string;
  /**
   * A name of your own for the sandbox: `[a-z0-9][a-z0-9._-]{0,62}`, and nothing that looks like an id. No two sandboxes of one ledger
   * (`GLOVEBOX_HOME`) have the same; a name in use is `conflict`. It is free again once the sandbox is removed.
   */
  name?: string;
  /**
   * What to do if there already is a sandbox with this `name`. `fail`, the default: `conflict`. `reopen`: open it as `id` would, and make one only if
   * there is none; an option that differs from what it was made with is `conflict`. Needs `name`.
   */
  ifExists?: "fail" | "reopen";
  /**
   * Labels to find the sandbox by: at most 16. Keys: `[A-Za-z0-9._/-]{1,63}`. Values: at most 255 characters, no control characters. They are shown
   * in lists and given to services that have labels, so never put a secret in one.
   */
  labels?: Readonly<Record<string, string>>;
  /**
   * Keep the files when the sandbox is torn down, so that you can reopen it by `id`. `all`: also bring back `$HOME` and `/tmp`; `unsupported` where
   * `capabilities.keep` is not `all`. Default false.
   */
  keep?: boolean | "all";
  /**
   * Milliseconds after which the sandbox is removed, kept or not, counted from its creation: at most 30 days. Reopening does not extend it, and forks
   * get what is left of it. A process that has it open removes it; otherwise the next that opens a sandbox of this backend, or `reap`. Default: never.
   */
  ttl?: number;
  /**
   * Milliseconds without a call and without a process of `exec` or `spawn` after which the open sandbox is closed: a kept one stays kept, any other is
   * removed. At most 30 days. Default: never.
   */
  idleTimeout?: number;
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
  /**
   * Secrets by the names of their variables. Commands see a placeholder; the value goes to the secret's hosts and nowhere else. Needs
   * `capabilities.secrets`, and `network: { allow }` with those hosts. A value that can't be had is `unauthenticated`.
   */
  secrets?: Readonly<Record<string, SecretRule>>;
  /** Default: none. A limit that the backend can't enforce is `unsupported`. */
  limits?: Limits;
  /** Default `required`: without isolation, opening fails with `no_isolation`. `none` runs commands without isolation. */
  isolation?: "required" | "none";
  /** Host paths to make visible in the sandbox. */
  mounts?: readonly Mount[];
  /** Ports of servers in the sandbox to make reachable at once; `url` returns their addresses. A kept sandbox gets them again. Default: none. */
  publish?: readonly number[];
  /** Abort it to cancel opening the sandbox. */
  signal?: AbortSignal;
  /** Called with each event. What it throws is ignored. */
  onEvent?(event: SandboxEvent): void;
  /**
   * Asked before something is refused that `network` does not allow. `allow-once` lets this connection or request pass; `allow` adds the host or, where
   * its rules exclude the request, that method and path to the rules of the open sandbox, as `setNetwork` would; anything else is a refusal, and so are
   * an error and no answer within a minute. One question per host and port at a time. Never asked for what can't be allowed: private addresses, names without a dot, what a policy of the machine forbids. Where
   * nothing listens (`network: "none"`) nothing is asked. Needs `capabilities.liveNetwork`.
   */
  onBlocked?(request: BlockedRequest): BlockedAnswer | Promise<BlockedAnswer>;
  /**
   * A file to which every connection and refusal is added, each as a line of JSON (`NetworkEvent`). Made with mode 0600 if absent; a symbolic link is
   * refused. What can't be written down does not pass. A kept sandbox that is reopened has it again. Needs `capabilities.liveNetwork`, and another
   * `network` than `"full"`; it must not be where commands can write. Default: none.
   */
  audit?: string;
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
 * `path_confinement`, unless the sandbox was opened with `paths: "sandbox"`. After `teardown` every call except `teardown` is `closed`.
 */
export interface Sandbox extends AsyncDisposable {
  /** Its id in the ledger. `openSandbox({ id })` reopens a kept sandbox, or gives a second handle to one that this process has open. */
  readonly id: string;
  /** The name that it was given. Absent: none. */
  readonly name?: string;
  /** The labels that it was given. */
  readonly labels: Readonly<Record<string, string>>;
  /** When it was made, in ISO 8601. */
  readonly createdAt: string;
  /** Name of its backend. */
  readonly backend: string;
  /** Absolute path of the work directory, as commands see it. */
  readonly workDir: string;
  /**
   * The host's path of the files, where they are a directory of the host. Commands can write anything there at any time, links included: treat all of
   * it as untrusted.
   */
  readonly hostDir?: string;
  /** What its backend really enforces. */
  readonly capabilities: Capabilities;
  /** The ports that it was opened with (`SandboxOptions.publish`). `url` has their addresses. */
  readonly published: readonly number[];
  /** Run a program and wait for it to end. */
  exec(opts: ExecOptions): Promise<ExecResult>;
  exec(program: string, args?: readonly string[], opts?: Omit<ExecOptions, "argv">): Promise<ExecResult>;
  /** Run a script with a shell. Default shell: `/bin/sh`. */
  shell(script: string, opts?: Omit<ExecOptions, "argv"> & { shellPath?: string }): Promise<ExecResult>;
  /** Start a long-running program. */
  spawn(opts: SpawnOptions): Promise<SandboxProcess>;
  /** The processes that `spawn` started, in that order: those that run, and for ten minutes the last 64 that ended. */
  processes(): Promise<ProcessHandle[]>;
  /** One of them by its id. An id that is unknown or forgotten is `not_found`. */
  process(id: string): Promise<ProcessHandle>;
  /** Write several files, and make directories as needed. */
  uploadFiles(files: readonly FileUpload[], opts?: FileCallOptions): Promise<void>;
  /**
   * Write one file, whole or not at all. A stream is read as fast as it is written; if it fails or the call is aborted, the old file stays.
   */
  writeFile(path: string, content: FileContent, opts?: WriteFileOptions): Promise<void>;
  /** Write several files, given as path and content. */
  writeFiles(files: Readonly<Record<string, string | Uint8Array>>, opts?: FileCallOptions): Promise<void>;
  /** Add to the end of a file: all of the content or nothing. Makes the file and its directories if needed. */
  appendFile(path: string, content: string | Uint8Array, opts?: WriteFileOptions): Promise<void>;
  /** The file as UTF-8, or null if it does not exist. A FIFO, socket, device or directory is `not_regular_file`. */
  readFile(path: string, opts?: FileCallOptions): Promise<string | null>;
  /** Like `readFile`, but returns the exact bytes. */
  readBytes(path: string, opts?: FileCallOptions): Promise<Uint8Array | null>;
  /**
   * Like `readBytes`, for files of any size: the file is read only as fast as you read the stream. Each chunk must come within `operationTimeout`.
   * Read it to its end, or cancel it.
   */
  readStream(path: string, opts?: ReadStreamOptions): Promise<ReadableStream<Uint8Array> | null>;
  /** Whether something is there. Links are followed. */
  exists(path: string, opts?: FileCallOptions): Promise<boolean>;
  /**
   * What a path is, or null if it does not exist. A symbolic link is described itself; with `follow` it is what the link leads to: null if that does
   * not exist, `path_confinement` if it is outside, `invalid_path` if the links form a loop.
   */
  stat(path: string, opts?: FileCallOptions & { follow?: boolean }): Promise<FileStat | null>;
  /** Sorted names. A missing directory is `not_found`. */
  listDirectory(path?: string, opts?: FileCallOptions & { details?: false }): Promise<string[]>;
  /** What each entry is, sorted by name. */
  listDirectory(path: string, opts: FileCallOptions & { details: true }): Promise<DirectoryEntry[]>;
  /** Returns whether there was a file to delete. A directory is `not_regular_file`. */
  deleteFile(path: string, opts?: FileCallOptions): Promise<boolean>;
  /**
   * Remove a file, a link or an empty directory; with `recursive` a directory with everything in it. Returns whether something was there. A directory
   * that is not empty is `conflict`.
   */
  remove(path: string, opts?: FileCallOptions & { recursive?: boolean }): Promise<boolean>;
  /** Rename or move. Makes the directories of `to`, and replaces a file or an empty directory there. A missing `from` is `not_found`. */
  rename(from: string, to: string, opts?: FileCallOptions): Promise<void>;
  /**
   * Copy a file or a link; with `recursive` also a directory. Whole or not at all: `to` is the copy itself, and replaces a file, a link or an empty
   * directory there. Links are copied as links. Sockets, FIFOs and devices in a directory are left out.
   */
  copy(from: string, to: string, opts?: FileCallOptions & { recursive?: boolean }): Promise<void>;
  /** Make a directory and its parents. An existing one is fine. */
  makeDirectory(path: string, opts?: FileCallOptions): Promise<void>;
  /** Set the directory that relative paths and commands start from. */
  setWorkdir(path: string, opts?: FileCallOptions): Promise<void>;
  /**
   * Copy a directory out to a host path that is absent or empty; returns the absolute host path. Links that lead out of the directory are left out
   * and reported as a `warning`. Absolute links into the directory point into the copy.
   */
  exportDirectory(sandboxPath: string, hostPath: string, opts?: FileCallOptions): Promise<string>;
  /** The same as `exportDirectory`. */
  downloadDirectory(sandboxPath: string, hostPath: string, opts?: FileCallOptions): Promise<string>;
  /** Copy a host directory in, over what is there. */
  refreshFromHost(hostPath: string, sandboxPath: string, opts?: UploadOptions): Promise<void>;
  /** The same as `refreshFromHost`. */
  uploadDirectory(hostPath: string, sandboxPath: string, opts?: UploadOptions): Promise<void>;
  /**
   * Save the files. Returns an id that outlives the sandbox. A name that another snapshot has is `conflict`. `unsupported` where
   * `capabilities.snapshot` is `none`.
   */
  snapshot(opts?: SnapshotOptions): Promise<string>;
  /** Reset the files to a snapshot, given by id or name. An unknown one is `not_found`; one of another repository is `conflict`. */
  restore(idOrName: string): Promise<void>;
  /** Make independent sandboxes with the files as they are now. `unsupported` where `capabilities.fork` is `none`. */
  fork(): Promise<Sandbox>;
  fork(opts: { count: number }): Promise<Sandbox[]>;
  /** What has changed since the sandbox was made. */
  changes(): Promise<Changes>;
  /** Push the current files to a branch of the remote. `unsupported` without a repository. */
  pushBranch(branch: string, token: string, opts?: PushOptions): Promise<{ pushed: boolean; error?: string }>;
  /** The default branch of the remote. `unsupported` without a repository. */
  defaultBranch(): Promise<string>;
  /**
   * The URL at which a server in the sandbox can be reached. Where the service has none, this process listens on 127.0.0.1 and ::1 and passes
   * connections on to 127.0.0.1 or ::1 of the sandbox, whatever its `network` is; on Linux only for processes of the same user. Anything over TCP
   * works. `unsupported` where `capabilities.ports` is false.
   */
  url(port: number): Promise<string>;
  /** Wait until a server in the sandbox accepts connections on a port. `unavailable` if none does in time. */
  waitForPort(port: number, opts?: WaitForPortOptions): Promise<void>;
  /**
   * Let the sandbox reach these hosts, too, in the words of `network.allow`, until the window is closed; for example while dependencies are
   * installed. Give its `env` to the commands that use it. While processes run it is `conflict`, because they would get the network, too.
   * `unsupported` where it could not be closed again for certain: without isolation, and on the machines of a service.
   */
  openNetwork(allow: readonly string[]): Promise<NetworkWindow>;
  /**
   * Replace the network rules of the open sandbox: `"none"` or a list of names, in the words of the option `network`. Connections that the new rules
   * don't allow are cut, the others stay. Commands that start from now on get the variables that the rules need; those that run are not told. The
   * rules are recorded: a kept sandbox is reopened with them, and forks have them. While a window of `openNetwork` is open it is `conflict`. To and
   * from `"full"` is `unsupported`, since that is decided when the sandbox is made; so is a backend without `capabilities.liveNetwork`.
   */
  setNetwork(network: Exclude<NetworkPolicy, "full">): Promise<void>;
  /**
   * Replace the secrets of the open sandbox, in the words of the option `secrets`; `{}` removes all. New values are fetched first: if one can't be
   * had, it is `unauthenticated` and nothing changes. A secret that stays as it is keeps its placeholder; one that is removed or changed loses it.
   * Commands that start from now on get the variables; those that run are not told. `network.allow` must have the hosts, so `setNetwork` comes first.
   * Recorded, as by `setNetwork`. `unsupported` without `capabilities.secrets`.
   */
  setSecrets(secrets: Readonly<Record<string, SecretRule>>): Promise<void>;
  /**
   * Close the sandbox. Idempotent; never throws. What can't be removed stays in the ledger and is reported as a `leak` event. On a second handle it
   * only ends that handle.
   */
  teardown(): Promise<void>;
}

/** How to save the files of a sandbox. */
export interface SnapshotOptions {
  /**
   * A name to find it by, in place of its id: 1 to 63 lower-case letters, digits, dots, dashes and underscores. It is unique among the snapshots of
   * this machine's user and must not look like an id. Default: none.
   */
  name?: string;
  /** Abort it to give up: the call rejects with `aborted`, and a snapshot that is ready after that is deleted. */
  signal?: AbortSignal;
}

/** How long to wait for a port. */
export interface WaitForPortOptions {
  /** Milliseconds. Default 30 000, and never more than `operationTimeout`. */
  timeout?: number;
  /** Aborting it rejects with `aborted`. */
  signal?: AbortSignal;
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
