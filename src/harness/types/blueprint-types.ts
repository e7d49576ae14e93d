import type { Limits, Mount } from "../../../contracts/types.js";
import type { Sandbox } from "../../sandbox/types.js";
import type { AgentDriver, NodeResult, RunContext } from "../node-types.js";

/** Other names of the kinds. */
export type NodeKindAlias = "preflight" | "deterministic" | "agentic" | "validate";

/** Text with templates, or a function of the run. */
export type Text = string | ((context: RunContext) => string);

/** A condition in the expression language, or a function of the run. */
export type Condition = string | ((context: RunContext) => boolean | Promise<boolean>);

/** Bounds of a run. Reaching one ends it gracefully and keeps what was done. */
export interface RunLimits {
  /** Default 60 minutes. */
  readonly wall: number;
  readonly costUsd?: number;
  /** Of all agents together. */
  readonly turns?: number;
  /** How long an agent may be silent. Default 5 minutes. */
  readonly idle: number;
}

/** Causes that lie in the infrastructure: the only ones that a node is tried again for. */
export type RetryCause = "rate_limit" | "network" | "crash" | "unavailable";

export interface RetryPolicy {
  /** Tries after the first. Default 2. */
  readonly max: number;
  /** Wait before the first of them; doubled each time. Default 5 s. */
  readonly backoff: number;
  readonly on: readonly RetryCause[];
}

/** A value that a run can be given. */
export interface InputSpec {
  readonly type: "string" | "number" | "boolean";
  readonly description?: string;
  readonly required: boolean;
  readonly default?: string | number | boolean;
}

/** The sandbox that a blueprint wants. */
export interface BlueprintSandbox {
  readonly image?: string;
  readonly workspace?: "worktree" | "overlay" | "copy";
  /** Hosts beside those that agents need. `full`: all. */
  readonly network?: "none" | "full";
  readonly allow: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Programs to run before the first node, and before the agents are looked for. */
  readonly setup: readonly (readonly string[])[];
  readonly limits?: Limits;
  readonly mounts: readonly Mount[];
}

/** What every node has. */
interface NodeBase {
  readonly id: string;
  readonly name: string;
  readonly description?: string;
  readonly when?: Condition;
  readonly needs: readonly string[];
  readonly timeout?: number;
  readonly retry: RetryPolicy;
  /** A failure of this node does not end the run. */
  readonly continueOnError: boolean;
  readonly env: Readonly<Record<string, Text>>;
  readonly cwd?: string;
  /** Names of variables that the node gets from outside. */
  readonly secrets: readonly string[];
}

/** What is run: a program with its arguments, or a script by request. */
export type Runnable =
  | { readonly run: readonly Text[]; readonly shell?: never }
  | { readonly shell: string; readonly run?: never };

/** A step written in TypeScript. Throwing is a failure. */
export type NodeFunction = (
  context: RunContext,
  sandbox: Sandbox,
  signal: AbortSignal,
) => Promise<Partial<NodeResult> | undefined> | Partial<NodeResult> | undefined;

export interface CommandNode extends NodeBase {
  readonly kind: "command";
  readonly run?: readonly Text[];
  readonly shell?: string;
  readonly exec?: NodeFunction;
}

/** How an agent is asked. */
export interface AgentTask {
  readonly agent: string | AgentDriver;
  /** The program of a custom agent (`agent: command`), which reads the prompt from stdin. */
  readonly command?: readonly string[];
  /** How the output of a custom agent is read. Default `text`. */
  readonly output?: "text" | "events";
  readonly prompt: Text;
  readonly systemPrompt?: Text;
  readonly model?: string;
  readonly tools?: readonly string[];
  /** Go on with the session of this node. */
  readonly continue?: string;
  readonly network: { readonly allow: readonly string[] };
  readonly limits: Partial<RunLimits>;
}

export interface AgentNode extends NodeBase, AgentTask {
  readonly kind: "agent";
}

export interface GateCheck {
  readonly id: string;
  readonly run?: readonly Text[];
  readonly shell?: string;
  readonly exec?: NodeFunction;
  readonly timeout?: number;
  readonly env: Readonly<Record<string, Text>>;
  readonly cwd?: string;
}

/** Who repairs when a gate is red, and how often. */
export interface GateRepair extends AgentTask {
  readonly env: Readonly<Record<string, Text>>;
  readonly secrets: readonly string[];
  /** Default 2. */
  readonly max: number;
  /** End when a repair changed nothing. Default true. */
  readonly stopIfNoChange: boolean;
}

export interface GateNode extends NodeBase {
  readonly kind: "gate";
  readonly checks: readonly GateCheck[];
  readonly onFail?: GateRepair;
  /** Globs of paths that must be as they were at the start; a change makes the gate red. */
  readonly protect: readonly string[];
}

export interface CommitNode extends NodeBase {
  readonly kind: "commit";
  readonly message: Text;
  readonly author?: { readonly name: string; readonly email: string };
}

export type BlueprintNode = CommandNode | AgentNode | GateNode | CommitNode;

/** A checked blueprint: aliases resolved, defaults filled in, nodes in the order in which they run. */
export interface Blueprint {
  readonly version: 1;
  readonly name: string;
  readonly description?: string;
  readonly inputs: Readonly<Record<string, InputSpec>>;
  readonly sandbox: BlueprintSandbox;
  readonly limits: RunLimits;
  readonly nodes: readonly BlueprintNode[];
  /** Whether a run that changes nothing is `no_changes`. Default: whether there is a commit node. */
  readonly expectsChanges: boolean;
  /** The file that it was read from. */
  readonly source?: string;
}
