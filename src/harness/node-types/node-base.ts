import type { Sandbox } from "../../sandbox/types.js";
import type { RunContext } from "./context-types.js";
import type { NodeKind, NodeResult } from "./report-types.js";

/** Text with templates, or a function of the run. */
export type Text = string | ((context: RunContext) => string);

/** A condition in the expression language, or a function of the run. */
export type Condition = string | ((context: RunContext) => boolean | Promise<boolean>);

/** Milliseconds, or a number with a unit: `500ms`, `30s`, `10m`, `2h`. */
export type Duration = number | string;

/** A step written in TypeScript. Throwing is a failure. */
export type NodeFunction = (
  context: RunContext,
  sandbox: Sandbox,
  signal: AbortSignal,
) => Promise<Partial<NodeResult> | undefined> | Partial<NodeResult> | undefined;

/** Bounds of a run. Reaching one ends it gracefully and keeps what was done. */
export interface RunLimits {
  /** Default 60 minutes. */
  readonly wall: number;
  readonly costUsd?: number;
  /** Of all agents together. */
  readonly turns?: number;
  /** How long an agent may be silent. Default 10 minutes. */
  readonly idle: number;
}

/** Bounds as they are written. */
export interface LimitsSpec {
  wall?: Duration;
  costUsd?: number;
  turns?: number;
  idle?: Duration;
}

/** Causes in the infrastructure, the only ones that a node is retried for. */
export type RetryCause = "rate_limit" | "network" | "crash" | "unavailable";

export interface RetryPolicy {
  /** Tries after the first. Default 2. */
  readonly max: number;
  /** Wait before the first of them; doubled each time. Default 5 s. */
  readonly backoff: number;
  readonly on: readonly RetryCause[];
}

/** What every node has. */
export interface NodeBase {
  readonly kind: NodeKind;
  /** Letters, digits, `-`, `_`. Default: made from `name`. */
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

/** Fields of a node that are checked as they are written. */
type AsWritten = "id" | "name" | "description" | "when" | "needs" | "continueOnError" | "env" | "cwd" | "secrets";

/** What every node may have, as it is written. */
export interface NodeSpecBase extends Partial<Pick<NodeBase, AsWritten>> {
  /** True skips the node; the opposite of `when`, as a function only. */
  skip?: (context: RunContext) => boolean | Promise<boolean>;
  timeout?: Duration;
  retry?: Partial<Omit<RetryPolicy, "backoff">> & { backoff?: Duration };
}
