import type { Capabilities } from "../../contracts/types.js";
import type { Sandbox, SandboxOptions } from "../sandbox/types.js";

/** What the kit may know about the machine that runs the sandboxes. Everything is optional. */
export interface ConformanceHost {
  /** Host path of a sandbox's files, if they have one. */
  directoryOf?(sandbox: Sandbox): string | undefined;
  /** Whether `network: "full"` shares the loopback of the process that runs the kit. */
  sharesNetwork?: boolean;
  /** Whether the addresses of ports are the service's own, which carry HTTP and nothing else. */
  hasHttpPorts?: boolean;
  /** Cuts off a running sandbox without warning: kills its init, its container or its channel. */
  sever?(sandbox: Sandbox): Promise<void>;
}

/** How the kit uses one backend. */
export interface ConformanceHarness {
  /** The name in the report. */
  readonly backend: string;
  /** Opens a sandbox; adds the options that the backend always needs (image, isolation, credentials). */
  open(opts?: SandboxOptions): Promise<Sandbox>;
  /** Removes a kept sandbox for good. Without it, the kit reopens the sandbox and tears it down. */
  remove?(id: string): Promise<void>;
  /** The cases that cannot pass here: id to reason. A skipped case that passes fails the run. */
  readonly skips?: Readonly<Record<string, string>>;
  /** Lists everything that the backend has created and not removed: processes, directories, mounts, containers. */
  census?(): Promise<string[]>;
  readonly host?: ConformanceHost;
}

/** Default sandboxes of one harness that cases use one after the other. */
export interface SandboxPool {
  /** Takes a free one with an empty work directory, or opens a new one. */
  take(): Promise<Sandbox>;
  /** Returns it to the pool; tears it down if it does not answer or cannot be emptied. */
  give(sandbox: Sandbox): Promise<void>;
  /** Tears down the free ones. */
  close(): Promise<void>;
}

/** What a case works with. Everything it opened is closed after it. */
export interface ConformanceContext {
  readonly harness: ConformanceHarness;
  /** Open, with the options of the case. */
  readonly sandbox: Sandbox;
  /** Opens another sandbox. */
  open(opts?: SandboxOptions): Promise<Sandbox>;
  /** A new empty directory on the host. */
  hostDirectory(): Promise<string>;
  /** Runs at the end of the case, even if it failed; last registered, first run. */
  defer(cleanUp: () => Promise<unknown>): void;
  /** Ends the case as skipped, for a reason that only shows in the sandbox: a program that the image lacks. */
  skip(reason: string): never;
}

/** One promise of the contract and the steps that check it. */
export interface ConformanceCase {
  /** Dotted and stable, for example `exec.argv.verbatim`. */
  readonly id: string;
  readonly title: string;
  /** The promise in a sentence, with the ids of the criteria it covers in square brackets. */
  readonly requirement: string;
  /** Options of the case's sandbox. */
  readonly options?: SandboxOptions;
  /** Whether the case tears its sandbox down; if not, the sandbox must still answer afterwards. */
  readonly closes?: boolean;
  /** Whether it leaves only files in the work directory and no process, so that another case may reuse its sandbox. */
  readonly shares?: boolean;
  /** Whether no other case may run at the same time. */
  readonly exclusive?: boolean;
  /** Why the case does not apply; undefined if it does. */
  needs?(capabilities: Capabilities, harness: ConformanceHarness): string | undefined;
  /** Runs instead if `needs` returns a reason: checks that the backend refuses what it does not support. Gets a sandbox without options. */
  refused?(context: ConformanceContext): Promise<void>;
  run(context: ConformanceContext): Promise<void>;
}

/** The result of one case. */
export interface ConformanceResult {
  readonly id: string;
  readonly status: "passed" | "failed" | "skipped";
  /** Why it failed or was skipped. */
  readonly reason?: string;
  readonly durationMs: number;
}

/** The results of all cases. A backend conforms if `failed` is 0. */
export interface ConformanceReport {
  readonly backend: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly results: readonly ConformanceResult[];
}

/** Options of a run. */
export interface ConformanceOptions {
  /** Ids, or prefixes of ids that end before a dot (`exec` or `exec.argv`). Default: all. */
  only?: readonly string[];
  /** Called when a case ends. */
  onResult?(result: ConformanceResult): void;
  /** Cases to run at once. Default 1. */
  concurrency?: number;
  /** Milliseconds after which a case fails. Default 120 000. */
  caseTimeout?: number;
}
