import type { Capabilities } from "../../contracts/types.js";
import type { Sandbox, SandboxOptions } from "../sandbox/types.js";

/** What the kit may know about the machine that the sandboxes of a harness live on. Everything is optional. */
export interface ConformanceHost {
  /** Host path that holds the files of a sandbox, where there is one. */
  directoryOf?(sandbox: Sandbox): string | undefined;
  /** Whether `network: "full"` shares the loopback of the process that runs the kit. */
  sharesNetwork?: boolean;
  /** Cuts the connection to a running sandbox in the rudest way: kills its init, its container, its channel. */
  sever?(sandbox: Sandbox): Promise<void>;
}

/** How the kit gets at one backend. */
export interface ConformanceHarness {
  /** Name for the report. */
  readonly backend: string;
  /** Opens a sandbox; what the backend always needs (image, isolation, credentials) is added here. */
  open(opts?: SandboxOptions): Promise<Sandbox>;
  /** Removes a kept sandbox for good. Without it, it is reopened and torn down. */
  remove?(id: string): Promise<void>;
  /** Case id to the reason why it cannot hold here. A skipped case that passes fails the run. */
  readonly skips?: Readonly<Record<string, string>>;
  /** Names everything that the backend has lying around: processes, directories, mounts, containers. */
  census?(): Promise<string[]>;
  readonly host?: ConformanceHost;
}

/** Default sandboxes of one harness that cases may use one after the other. */
export interface SandboxPool {
  /** One that no other case has now: a used one with an empty work directory, or a new one. */
  take(): Promise<Sandbox>;
  /** Takes it back; one that does not answer or cannot be emptied is torn down. */
  give(sandbox: Sandbox): Promise<void>;
  /** Tears down those that nobody has. */
  close(): Promise<void>;
}

/** What a case works with. Whatever it opened is given back after it. */
export interface ConformanceContext {
  readonly harness: ConformanceHarness;
  /** Opened with the options of the case. */
  readonly sandbox: Sandbox;
  /** Opens another sandbox. */
  open(opts?: SandboxOptions): Promise<Sandbox>;
  /** A new empty directory on the host. */
  hostDirectory(): Promise<string>;
  /** Runs at the end of the case, whatever came of it; last registered, first run. */
  defer(cleanUp: () => Promise<unknown>): void;
  /** Ends the case as skipped, for what only shows inside: a program that the image lacks. */
  skip(reason: string): never;
}

/** One promise of the contract and the steps that show it. */
export interface ConformanceCase {
  /** Dotted and stable, for example `exec.argv.verbatim`. */
  readonly id: string;
  readonly title: string;
  /** The promise in a sentence; ids of the criteria it covers in square brackets. */
  readonly requirement: string;
  /** Options of the sandbox that the case gets. */
  readonly options?: SandboxOptions;
  /** Whether the case tears its sandbox down; if not, it must still answer afterwards. */
  readonly closes?: boolean;
  /** Whether it leaves no process, and nothing but files in the work directory, so that the next such case may have its sandbox. */
  readonly shares?: boolean;
  /** Whether other cases must not run beside it. */
  readonly exclusive?: boolean;
  /** Why the case cannot apply; undefined when it can. */
  needs?(capabilities: Capabilities, harness: ConformanceHarness): string | undefined;
  /** Run instead when `needs` gave a reason: shows that what is not kept is refused. Gets a sandbox without options. */
  refused?(context: ConformanceContext): Promise<void>;
  run(context: ConformanceContext): Promise<void>;
}

/** What became of one case. */
export interface ConformanceResult {
  readonly id: string;
  readonly status: "passed" | "failed" | "skipped";
  /** Why it failed or was skipped. */
  readonly reason?: string;
  readonly durationMs: number;
}

/** What became of all cases. A backend conforms when `failed` is 0. */
export interface ConformanceReport {
  readonly backend: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly results: readonly ConformanceResult[];
}

/** How a run is made. */
export interface ConformanceOptions {
  /** Ids, or prefixes of ids that end before a dot (`exec` or `exec.argv`). Default: all. */
  only?: readonly string[];
  /** Called as each case ends. */
  onResult?(result: ConformanceResult): void;
  /** Cases at one time. Default 1. */
  concurrency?: number;
  /** Milliseconds after which a case has failed. Default 120 000. */
  caseTimeout?: number;
}
