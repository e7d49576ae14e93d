import type { NetworkPolicy } from "../../../contracts/types.js";
import type { Sandbox, SandboxOptions } from "../../sandbox/types.js";
import type { InstallStep } from "../install.js";
import type {
  AgentDriver,
  EventSink,
  LimitHit,
  NodeOutput,
  NodeReport,
  Reporter,
  RunContext,
  RunCost,
  RunError,
  RunLimits,
  RunStatus,
  TokenUsage,
} from "../node-types.js";
import type { Blueprint, BlueprintSpec } from "./blueprint-types.js";

/** Which agents there are, and which are used in place of what a blueprint says. */
export interface AgentChoice {
  /** Drivers by name, beside the built-in ones. */
  readonly agents?: Readonly<Record<string, AgentDriver>>;
  /** Used in place of what agent nodes ask for. */
  readonly agent?: string;
  readonly model?: string;
}

/** How `runBlueprint` runs. */
export interface EngineOptions extends AgentChoice {
  readonly sandbox: Sandbox;
  readonly context: RunContext;
  /** Override those of the blueprint. */
  readonly limits?: Partial<RunLimits>;
  /** Values by name. A node gets only those that it declares. */
  readonly secrets?: Readonly<Record<string, string>>;
  readonly onEvent: EventSink;
  /** Takes what nodes print as bytes, awaited and in order with the events; no event has it then. */
  readonly onOutput?: (output: NodeOutput) => void | Promise<void>;
  /** Milliseconds until the nodes must have ended, when that is less than `limits.wall`. */
  readonly wallLeft?: number;
  /** Cancels: the running node is ended, and the outcome is `cancelled`. */
  readonly signal?: AbortSignal;
  /** The network of the sandbox, for hints only. */
  readonly network?: NetworkPolicy;
  /** Variables that the sandbox was opened with, beside those of the blueprint: an agent's gateway may be among them. Never reported. */
  readonly sandboxEnv?: Readonly<Record<string, string>>;
  /** What is installed before everything else, each with the hosts that only it may reach. */
  readonly installs?: readonly InstallStep[];
  /** Node to start with. Nodes before it have the result that the context has, or are skipped. Null: none is left. */
  readonly startAt?: string | null;
  /** Nodes that the context has results of, whose agents' sessions are gone: what continues them starts a new one, with a warning. */
  readonly lostSessions?: readonly string[];
  /** Node to stop after. */
  readonly until?: string;
  /** Called after each node that was run. A failure is a warning. */
  readonly checkpoint?: (at: { node: NodeReport; index: number }) => Promise<void>;
}

/** What `runBlueprint` gives back. It never throws for what happens while nodes run. */
export interface RunOutcome {
  status: Exclude<RunStatus, "no_changes">;
  nodes: NodeReport[];
  tokenUsage: TokenUsage;
  cost: RunCost;
  limitsHit: LimitHit[];
  warnings: string[];
  durationMs: number;
  /** The node that ended the run. */
  endedBy?: string;
  error?: RunError;
  /** True when the sandbox is gone: nothing can be read from it any more. */
  sandboxLost: boolean;
}

/** When a branch is pushed. */
export type PushOn = "success" | "limit" | "always";

/** What opens a pull request. */
export type PrWith = "rest" | "gh";

/** How `runHarness` runs. */
export interface HarnessOptions {
  /** A name, a path, or a blueprint made by `defineBlueprint`. */
  blueprint: string | Blueprint | BlueprintSpec;
  /** A path, `org/repo` or a URL. */
  repo: string;
  intent: string;
  /** Push the branch and open a pull request. Default false. */
  push?: boolean;
  pushOn?: PushOn;
  draft?: boolean;
  /** What opens the pull request: GitHub's REST interface, or its program `gh` on this machine. Default `rest`. */
  prWith?: PrWith;
  /** Backend. Default: as `openSandbox` chooses. */
  sandboxType?: string;
  runId?: string;
  reporter?: Reporter | readonly Reporter[];
  specPath?: string;
  /** From the environment in the CLI. Never a flag. */
  githubToken?: string;
  daytona?: NonNullable<SandboxOptions["daytona"]>;
  /** More options for the sandbox; they win over those of the blueprint. */
  sandbox?: SandboxOptions;
  /** Options for the sandbox where neither the blueprint nor `sandbox` says anything, such as those of a configuration file. */
  sandboxDefaults?: SandboxOptions;
  /**
   * Where the work directory is inside, on a backend that lets us choose and if nothing of the blueprint or of the host is needed there. The command
   * line asks for `/workspace`. Default: the backend's own place.
   */
  preferredWorkDir?: string;
  /** Commit, tag or branch to start from. Default: HEAD. */
  ref?: string;
  /** Branch to work on. Default `harness/<runId>/<slug>`. */
  branch?: string;
  /** Branch that the pull request is for. Default: that of the repository. */
  base?: string;
  agent?: string;
  model?: string;
  agents?: Readonly<Record<string, AgentDriver>>;
  inputs?: Readonly<Record<string, string | number | boolean>>;
  env?: Readonly<Record<string, string>>;
  /** Where secrets are looked up by name. Default: the process's environment. */
  secretSource?: Readonly<Record<string, string | undefined>>;
  limits?: Partial<RunLimits>;
  /**
   * The network of all nodes. `allow`: these hosts beside those that the blueprint and its agents need. `full`: every host. `none`: none at all, not
   * even for the install step. Default: what the blueprint and its agents need.
   */
  network?: NetworkPolicy;
  /** Whether dependencies are installed before the first node. Default true, unless the blueprint says otherwise. */
  install?: boolean;
  /** Ignored paths of your working tree to copy in, such as `node_modules`, beside those of the blueprint. */
  copy?: readonly string[];
  from?: string;
  until?: string;
  /** Keep the sandbox. Default `failed`. */
  keep?: "never" | "failed" | "always";
  /** Directory of the run directories. Default `.glovebox/runs`. */
  out?: string;
  /** Trust a blueprint from a repository that is code, or that wants something of the host; remembered. Default false. */
  trust?: boolean;
  /** Stops the run cleanly. A reason with an `exitCode` above 128 gives it to the report; else that is 130. */
  signal?: AbortSignal;
}
