import type { Limits, Mount } from "../../../contracts/types.js";
import type { AgentDriver, NodeKind } from "../node-types.js";
import type { Condition, NodeFunction, NodeKindAlias, RetryCause, Text } from "./blueprint-types.js";

/** Milliseconds, or a number with a unit: `500ms`, `30s`, `10m`, `2h`. */
export type Duration = number | string;

/** Bounds as they are written. */
export interface LimitsSpec {
  wall?: Duration;
  costUsd?: number;
  turns?: number;
  idle?: Duration;
}

/** What every node may have. */
interface NodeSpecBase {
  /** Letters, digits, `-`, `_`. Default: made from `name`. */
  id?: string;
  name?: string;
  description?: string;
  when?: Condition;
  /** True skips the node; the opposite of `when`, as a function only. */
  skip?: (context: Parameters<Exclude<Condition, string>>[0]) => boolean | Promise<boolean>;
  needs?: readonly string[];
  timeout?: Duration;
  retry?: { max?: number; backoff?: Duration; on?: readonly RetryCause[] };
  continueOnError?: boolean;
  env?: Readonly<Record<string, Text>>;
  cwd?: string;
  secrets?: readonly string[];
}

/** What is run: a program with its arguments, a script by request, or, in code, a function. */
export interface RunnableSpec {
  run?: readonly Text[];
  shell?: string;
  exec?: NodeFunction;
}

export interface CommandSpec extends NodeSpecBase, RunnableSpec {
  kind: "command" | "preflight" | "deterministic";
  /** Another name of `exec`. */
  check?: NodeFunction;
}

/** How an agent is asked, as it is written. */
export interface AgentTaskSpec {
  /** `claude-code`, `codex`, `pi`, `command`, or, in code, a driver. Default `claude-code`. */
  agent?: string | AgentDriver;
  command?: readonly string[];
  output?: "text" | "events";
  prompt: Text;
  systemPrompt?: Text;
  model?: string;
  tools?: readonly string[];
  /** Another name of `tools`. */
  allowedTools?: readonly string[];
  continue?: string;
  network?: { allow?: readonly string[] };
  limits?: LimitsSpec;
}

export interface AgentSpec extends NodeSpecBase, AgentTaskSpec {
  kind: "agent" | "agentic";
}

export interface CheckSpec extends RunnableSpec {
  id?: string;
  name?: string;
  timeout?: Duration;
  env?: Readonly<Record<string, Text>>;
  cwd?: string;
}

export interface RepairSpec extends Omit<AgentTaskSpec, "prompt"> {
  /** Default: what failed, with the end of its output. */
  prompt?: Text;
  env?: Readonly<Record<string, Text>>;
  secrets?: readonly string[];
  max?: number;
  stopIfNoChange?: boolean;
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

export interface CommitSpec extends NodeSpecBase {
  kind: "commit";
  message: Text;
  author?: { name: string; email: string };
}

export type NodeSpec = CommandSpec | AgentSpec | GateSpec | CommitSpec;

/** A blueprint as it is written, in code or in a document. A document has no functions. */
export interface BlueprintSpec {
  version?: 1;
  name: string;
  description?: string;
  inputs?: Readonly<
    Record<
      string,
      {
        type?: "string" | "number" | "boolean";
        description?: string;
        required?: boolean;
        default?: string | number | boolean;
      }
    >
  >;
  sandbox?: {
    image?: string;
    workspace?: "worktree" | "overlay" | "copy";
    network?: "none" | "full";
    allow?: readonly string[];
    env?: Readonly<Record<string, string>>;
    setup?: readonly (readonly string[])[];
    limits?: Limits;
    mounts?: readonly Mount[];
  };
  limits?: LimitsSpec;
  expectsChanges?: boolean;
  nodes: readonly NodeSpec[];
}

/** Every word that may stand as `kind`. */
export type KindWord = NodeKind | NodeKindAlias;
