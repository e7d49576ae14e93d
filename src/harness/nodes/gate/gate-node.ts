import type { Duration, NodeBase, NodeSpecBase, Text } from "../../node-types.js";
import type { AgentTask, AgentTaskSpec } from "../agent-task.js";
import type { RunnableSpec } from "../runnable.js";

export interface GateCheck extends Readonly<RunnableSpec> {
  readonly id: string;
  readonly timeout?: number;
  readonly env: Readonly<Record<string, Text>>;
  readonly cwd?: string;
}

export interface CheckSpec extends Partial<Omit<GateCheck, "timeout">> {
  name?: string;
  timeout?: Duration;
}

/** How a repair differs from an agent node. */
interface RepairOptions {
  readonly env: Readonly<Record<string, Text>>;
  readonly secrets: readonly string[];
  /** How often an agent may try. Default 2. */
  readonly max: number;
  /** End when a repair changed nothing. Default true. */
  readonly stopIfNoChange: boolean;
}

/** Who repairs when a gate is red, and how often. */
export interface GateRepair extends AgentTask, RepairOptions {}

export interface RepairSpec extends Omit<AgentTaskSpec, "prompt">, Partial<RepairOptions> {
  /** Default: what failed, with the end of its output. */
  prompt?: Text;
}

export interface GateSpec extends NodeSpecBase {
  kind: "gate" | "validate";
  checks?: readonly CheckSpec[];
  /** Another name of `checks`. */
  steps?: readonly CheckSpec[];
  onFail?: RepairSpec;
  /** Another name of `onFail`. */
  onFailure?: RepairSpec;
  /** Another name of `onFail.max`. */
  maxRetries?: number;
  protect?: readonly string[];
}

export interface GateNode extends NodeBase {
  readonly kind: "gate";
  readonly checks: readonly GateCheck[];
  readonly onFail?: GateRepair;
  /** Globs of paths that must be as they were at the start; a change makes the gate red. */
  readonly protect: readonly string[];
}

/** The group of names that the prompt of a repair has beside those that all templates have. */
export const GATE_NAMES = "gate";
