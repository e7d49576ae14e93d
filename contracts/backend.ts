import type { Driver, PendingRemoval } from "./driver.js";
import type { Finding } from "./finding.js";
import type { Sandbox, SandboxOptions } from "./sandbox.js";
import type { Capabilities, NetworkPolicy, SecretRule } from "./types.js";

/** Something outside this process that a sandbox made or was about to make, and that must be removed with it. Plain data. */
export interface Resource {
  readonly kind: string;
  readonly [field: string]: unknown;
}

/** How a resource is removed. */
export interface RemovalOptions {
  /** How long to wait for a busy service, in milliseconds. */
  readonly patience: number;
  /** Directories next to the record. They are removed with it; remove them together with the resource where that is faster. */
  readonly beside: readonly string[];
}

/** The process that has a sandbox open. */
export interface SandboxOwner {
  readonly bootId: string;
  readonly pidNs: string;
  readonly pid: number;
  readonly startTime: string;
  readonly host?: string;
}

/** A Glovebox sandbox at a service, as its labels describe it. */
export interface RemoteSandboxInfo {
  readonly id: string;
  readonly owner: SandboxOwner;
  readonly name?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Whether it stays after its owner has died. */
  readonly keep: boolean;
  /** ISO 8601. */
  readonly createdAt?: string;
  remove(): Promise<void>;
}

/** How a backend is probed. */
export interface ProbeOptions {
  /** What the user's configuration says. */
  readonly options?: SandboxOptions;
  /** Whether the user asked for this backend alone: then it may take half a minute, and try what it can't know otherwise. Default false. */
  readonly isThorough?: boolean;
}

/** What the ledger knows about one snapshot. A snapshot belongs to no process and outlives its sandbox. */
export interface SnapshotRecord {
  readonly version: 1;
  readonly id: string;
  /** Unique among the snapshots of this home. Absent: it has none. Glovebox writes it, not the backend. */
  readonly name?: string;
  readonly sandboxId: string;
  readonly backend: string;
  /** ISO 8601. */
  readonly createdAt: string;
  /** The user's repository that the files come from. Absent: none. */
  readonly repo?: string;
  /** Where a new sandbox with these files has its work directory, unless the user says otherwise. Absent: at the backend's own place. */
  readonly workDir?: string;
  /** The git directory that contains the snapshot, if it is a commit. */
  readonly gitDir?: string;
  readonly ref?: string;
  readonly commit?: string;
  /** Path of the archive with the files that are not in the commit. Absent: there are none. */
  readonly archive?: string;
  /** Data that only the backend reads. */
  readonly details?: unknown;
}

/** How copies of a sandbox are made. */
export interface ForkOptions<D extends Driver> {
  readonly atOnce?: boolean;
  around?(makeAll: () => Promise<void>): Promise<void>;
  complete?(forks: readonly D[]): Promise<void>;
}

/**
 * The ledger entry of one sandbox, as its backend uses it. Record whatever you make outside this process before you make it. Then a crash at any
 * point leaves nothing that the next start can't find and remove.
 */
export interface SandboxEntry {
  readonly id: string;
  /** The name that the user gave it, for the service to show. */
  readonly name?: string | undefined;
  /** The labels that the user gave it, for the service to show. */
  readonly labels: Readonly<Record<string, string>>;
  /** Whether the files stay when the sandbox is closed. */
  readonly keep: boolean;
  /** Whether `$HOME` and `/tmp` must come back, too. Only true where `capabilities.keep` is `all`. */
  readonly keepsAll: boolean;
  /** A private directory on the host that is removed with the record. */
  readonly directory: string;
  /** When the sandbox is removed whatever happens, ISO 8601. Give it to a service that has such a timer. Absent: never. */
  readonly expiresAt?: string;
  /** The snapshot whose files the sandbox starts with. Absent: none. */
  readonly snapshot?: SnapshotRecord;
  /** Aborted when the caller no longer waits for the sandbox. Never aborted once the sandbox is ready. */
  readonly signal: AbortSignal;
  /** The recorded resources, in the order in which they were made. */
  readonly resources: readonly Resource[];
  /** Create the record, with the resources that you make first. Await it before you make anything. */
  createRecord(first: { workDir?: string; resources?: readonly Resource[] }): Promise<void>;
  /** Add resources to the record. Await it before you make them. */
  record(...resources: readonly Resource[]): Promise<void>;
  /** Drop resources from the record once they are gone. */
  forget(isGone: (resource: Resource) => boolean): Promise<void>;
  /** Save what `reopen` gets later: plain data, never a secret. Call it again whenever the plan changes. */
  savePlan(plan: unknown): Promise<void>;
  /** The network rules that apply now. */
  readonly network: NetworkPolicy;
  /** Record other network rules, before they apply: a sandbox that is reopened or forked has them. */
  saveNetwork(network: NetworkPolicy): Promise<void>;
  /** The secrets that it has now. */
  readonly secrets: Readonly<Record<string, SecretRule>>;
  /** Record other secrets, before they apply. They contain no values. */
  saveSecrets(secrets: Readonly<Record<string, SecretRule>>): Promise<void>;
  /** Throws `permission_denied` if a policy of the machine forbids a network. */
  checkNetwork(network: NetworkPolicy): Promise<void>;
  /** Report something the user should know that is not a failure. Warnings wait until the sandbox is ready. */
  warn(message: string): void;
  /** Report something that takes time while the sandbox is being made, such as a download. The user sees it at once. */
  progress(message: string): void;
  /** Report that a sandbox that should be kept is gone. Its record is then removed when the sandbox is closed. */
  discard(): void;
  /**
   * Make copies of the sandbox: all of them or none. `create` works like `Backend.create` for copy number `n`, counted from 1. Copies are made one
   * after the other unless `atOnce` is true, inside `around` if it is given. `complete` is called after that, before any of them is ready.
   */
  fork<D extends Driver>(
    count: number,
    create: (entry: SandboxEntry, n: number) => Promise<D>,
    opts?: ForkOptions<D>,
  ): Promise<D[]>;
}

/**
 * Everything Glovebox knows about a backend. `openSandbox` owns the life cycle of a sandbox: option checks, the id, the record, abort and deadline,
 * undo on failure, keeping, reopening and removal. A backend only makes, reopens and removes.
 */
export interface Backend {
  /** The name in `openSandbox({ backend: name })` and in the record of each of its sandboxes. */
  readonly name: string;
  /** What the backend enforces here with these options. Makes no request and creates nothing. */
  capabilities(opts?: SandboxOptions): Capabilities;
  /** Whether `Driver.openNetwork` works in a sandbox with these options. Default: no. */
  canOpenNetwork?(opts: SandboxOptions): boolean;
  /** The network of a sandbox whose options name none. Default `none`, or `full` where `none` can't be enforced. */
  readonly defaultNetwork?: NetworkPolicy;
  /** The image of a new sandbox whose options name none. Absent: the backend uses no images, or its service chooses. */
  readonly defaultImage?: string;
  /** The images that a new sandbox with these options is made of; undefined for one that the service chooses. Absent: it uses no images. */
  images?(opts: SandboxOptions): readonly (string | undefined)[];
  /** Names of the given options that weaken the isolation of a sandbox, such as `docker.unsafe.privileged`. Absent: there are none. */
  unsafeOptions?(opts: SandboxOptions): readonly string[];
  /**
   * Checks the options under the backend's name: returns them or throws `invalid_argument`. Any schema library fits. Default: the backend accepts
   * none.
   */
  readonly options?: { parse(value: unknown): unknown };
  /** Throws `unsupported` for options that it can never enforce, `invalid_argument` for wrong ones. Makes no request and creates nothing. */
  check?(opts: SandboxOptions): void;
  /**
   * Resolves everything in the options that depends on this process, such as relative paths. A kept sandbox is reopened with the resolved options.
   */
  resolveOptions?(opts: SandboxOptions): SandboxOptions;
  /** Sets of environment variables that contain credentials. One complete set is enough. */
  readonly credentials?: readonly (readonly string[])[];
  /** Secrets among the options. They are redacted in every error. */
  secrets?(opts: SandboxOptions): readonly (string | undefined)[];
  /**
   * Whether `create` starts from the files of `entry.snapshot` itself, image included. Default false: what it makes is filled by `Driver.restore`
   * before the sandbox is ready.
   */
  readonly startsFromSnapshots?: boolean;
  /** Makes a sandbox. If it throws, every recorded resource is removed; anything else it started, it must end itself. */
  create(opts: SandboxOptions, entry: SandboxEntry): Promise<Driver>;
  /** Reopens a kept sandbox from the plan that it saved. Absent: sandboxes of this backend can't be kept. */
  reopen?(plan: unknown, opts: SandboxOptions, entry: SandboxEntry): Promise<Driver>;
  /** Removes one recorded resource. Idempotent; throws if the resource is still there. */
  removeResource(resource: Resource, how: RemovalOptions): Promise<void> | Promise<PendingRemoval | undefined>;
  /** Removes what the record of a snapshot names. Idempotent. */
  removeSnapshot?(record: SnapshotRecord): Promise<void>;
  /** Lists Glovebox sandboxes at the service, including those that no ledger on this machine knows. Empty without credentials. */
  list?(): Promise<RemoteSandboxInfo[]>;
  /** Removes what dead owners left and no record names. Returns the names of what it removed, or would remove with `dryRun`. */
  sweep?(opts: { dryRun?: boolean; options?: SandboxOptions }): Promise<string[]>;
  /** Removes unused entries from the backend's cache until at most `maxBytes` bytes remain. Returns what it removed. */
  trimCache?(maxBytes: number): Promise<string[]>;
  /** Reports what the backend needs on this machine, whether it is there, and how to fix it. Leaves no sandbox behind. */
  probe?(how?: ProbeOptions): Promise<Finding[]>;
  /** Options under its name that may be written to a file. Never a secret, and nothing that only this process has. Default none. */
  readonly writtenOptions?: readonly string[];
  /** Whether it runs on this machine. Default false. */
  readonly runsHere?: boolean;
  /** Prepared starting points that it can build at its service. `build` returns false if the name is already built. */
  readonly prepared?: {
    readonly names: readonly string[];
    build(name: string, onLog?: (line: string) => void): Promise<boolean>;
  };
  /** Whether it can work in one of the user's directories (`baseDir`). Default false. */
  readonly takesBaseDir?: boolean;
  /** What the conformance kit needs to know. */
  readonly conformance?: {
    /** Case id to the reason why the case can't pass. */
    readonly skips?: Readonly<Record<string, string>>;
    /** Host path that contains the files of a sandbox. */
    directoryOf?(sandbox: Sandbox): string | undefined;
    /** Whether `network: "full"` shares the loopback interface of this process. */
    readonly sharesNetwork?: boolean;
    /** Whether the addresses of ports are the service's own, which carry HTTP and nothing else. */
    readonly hasHttpPorts?: boolean;
  };
}
