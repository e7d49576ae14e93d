import type { Driver, Vanishing } from "./driver.js";
import type { Finding } from "./finding.js";
import type { Sandbox, SandboxOptions } from "./sandbox.js";
import type { Capabilities, NetworkPolicy } from "./types.js";

/** Something outside this process that a sandbox made, or was about to make, and that has to be removed with it. Nothing but data. */
export interface Resource {
  readonly kind: string;
  readonly [field: string]: unknown;
}

/** How a resource is removed. */
export interface RemovalOptions {
  /** Milliseconds that a busy service may be waited for. */
  readonly patience: number;
  /** Directories beside the record. They go with it, and may be removed together with the resource where that is quicker. */
  readonly beside: readonly string[];
}

/** The process that answers for a sandbox. */
export interface SandboxOwner {
  readonly bootId: string;
  readonly pidNs: string;
  readonly pid: number;
  readonly startTime: string;
  readonly host?: string;
}

/** A sandbox of ours at a service, as its labels describe it. */
export interface RemoteSandboxInfo {
  readonly id: string;
  readonly owner: SandboxOwner;
  /** Whether it stays when its owner is gone. */
  readonly keep: boolean;
  /** ISO 8601. */
  readonly createdAt?: string;
  remove(): Promise<void>;
}

/** What is known about one snapshot. It belongs to no process and outlives its sandbox. */
export interface SnapshotRecord {
  readonly version: 1;
  readonly id: string;
  readonly sandboxId: string;
  readonly backend: string;
  /** ISO 8601. */
  readonly createdAt: string;
  /** The user's repository that the files are from. Absent: there is none. */
  readonly repo?: string;
  /** The git directory that holds it, where it is a commit. */
  readonly gitDir?: string;
  readonly ref?: string;
  readonly commit?: string;
  /** Path of the archive with the files that are not in the commit. Absent: there are none. */
  readonly archive?: string;
  /** What only the backend can read. */
  readonly details?: unknown;
}

/**
 * The entry of one sandbox in the ledger, as its backend uses it. Whatever the backend makes outside this process is in the
 * record first: then a crash at any point leaves nothing that the next start can't find and remove.
 */
export interface SandboxEntry {
  readonly id: string;
  /** Whether the files stay when the sandbox is closed. */
  readonly keep: boolean;
  /** A private directory on the host that is removed with the record. */
  readonly directory: string;
  /** Aborted when nobody waits for the sandbox any more. Never aborted once the sandbox is ready. */
  readonly signal: AbortSignal;
  /** What the record names, in the order in which it was made. */
  readonly resources: readonly Resource[];
  /** Create the record. To be awaited before anything is made, with what is made first. */
  begin(first: { workDir?: string; resources?: readonly Resource[] }): Promise<void>;
  /** Add resources to the record. To be awaited before they are made. */
  record(...resources: readonly Resource[]): Promise<void>;
  /** Take resources out of the record, once they are gone. */
  forget(isGone: (resource: Resource) => boolean): Promise<void>;
  /** What `reopen` gets later. Nothing but data, never a secret. Call it again whenever it changes. */
  savePlan(plan: unknown): Promise<void>;
  /** Say what the user should know and is no failure. Before the sandbox is there it waits for it. */
  warn(message: string): void;
  /** Say that what was to be kept is gone. Then the record goes, too, when the sandbox is closed. */
  discard(): void;
  /**
   * Makes copies of the sandbox, all of them or none. `create` is `Backend.create` for the copy number `n`, from 1. They are made one after the
   * other unless `atOnce`; `complete` is called when all of them are made and before any of them is ready.
   */
  fork<D extends Driver>(
    count: number,
    create: (entry: SandboxEntry, n: number) => Promise<D>,
    opts?: { atOnce?: boolean; complete?: (forks: readonly D[]) => Promise<void> },
  ): Promise<D[]>;
}

/**
 * All that Glovebox knows about a backend. `openSandbox` owns the life of a sandbox: checks, the id, the record, abort and deadline,
 * undo on failure, keeping and reopening, removal. A backend only makes, reopens and removes.
 */
export interface Backend {
  /** As in `openSandbox({ backend: name })`, and in the record of each of its sandboxes. */
  readonly name: string;
  /** What it enforces here with these options. Asks nobody and makes nothing. */
  capabilities(opts?: SandboxOptions): Capabilities;
  /** The network of a sandbox that does not ask for one. Default `none`, or `full` where `none` can't be enforced. */
  readonly defaultNetwork?: NetworkPolicy;
  /** Checks the options under the backend's name: returns them, or throws `invalid_argument`. Any schema library fits. Default: none are taken. */
  readonly options?: { parse(value: unknown): unknown };
  /** Refuses options that it can never enforce. Asks nobody and makes nothing. */
  check?(opts: SandboxOptions): void;
  /** The options with everything resolved that depends on this process, such as relative paths: a kept sandbox has them again as they are here. */
  resolveOptions?(opts: SandboxOptions): SandboxOptions;
  /** Sets of variables with credentials; one complete set is enough. */
  readonly credentials?: readonly (readonly string[])[];
  /** Secrets among the options: no error ever shows them. */
  secrets?(opts: SandboxOptions): readonly (string | undefined)[];
  /** Makes a sandbox. When it throws, everything that the record names is removed; it has to end what it started itself. */
  create(opts: SandboxOptions, entry: SandboxEntry): Promise<Driver>;
  /** Opens a kept sandbox again from the plan it saved. Absent: sandboxes can't be kept. */
  reopen?(plan: unknown, opts: SandboxOptions, entry: SandboxEntry): Promise<Driver>;
  /** Removes one resource that a record names. Idempotent; throws when it is still there. */
  removeResource(resource: Resource, how: RemovalOptions): Promise<void> | Promise<Vanishing | undefined>;
  /** Removes what a snapshot's record names. Idempotent. */
  removeSnapshot?(record: SnapshotRecord): Promise<void>;
  /** Our sandboxes at the service, also those that no ledger here knows. None where there are no credentials. */
  list?(): Promise<RemoteSandboxInfo[]>;
  /** Removes what dead owners left and no record names. Returns the names of what was, or would be, removed. */
  sweep?(opts: { dryRun?: boolean; options?: SandboxOptions }): Promise<string[]>;
  /** Removes from the backend's cache what is not in use, until the rest has at most so many bytes. Returns what was removed. */
  trimCache?(maxBytes: number): Promise<string[]>;
  /** Reports what the backend needs on this machine, whether it is there, and what fixes it. Makes nothing that stays. */
  probe?(): Promise<Finding[]>;
  /** Options under its name that may be written to a file. Never a secret, and nothing that only this process has. Default none. */
  readonly writtenOptions?: readonly string[];
  /** Whether it runs on this machine. Default false. */
  readonly runsHere?: boolean;
  /** Prepared starting points that it can build at its service. `build` returns false when one is already there. */
  readonly prepared?: {
    readonly names: readonly string[];
    build(name: string, onLog?: (line: string) => void): Promise<boolean>;
  };
  /** Whether it can work in a directory of the user's (`baseDir`). Default false. */
  readonly takesBaseDir?: boolean;
  /** What the conformance kit needs to know. */
  readonly conformance?: {
    /** Case id to the reason why it can't pass. */
    readonly skips?: Readonly<Record<string, string>>;
    /** Host path that holds the files of a sandbox. */
    directoryOf?(sandbox: Sandbox): string | undefined;
    /** Whether `network: "full"` shares the loopback of this process. */
    readonly sharesNetwork?: boolean;
  };
}
