import { SandboxError } from "../../contracts/errors.js";
import type { NodeBase, NodeKind } from "./node-types.js";
import { agentKind } from "./nodes/agent.js";
import { commandKind } from "./nodes/command.js";
import { commitKind } from "./nodes/commit.js";
import { gateKind } from "./nodes/gate.js";
import type { AgentUse, NodeKindModule } from "./nodes/kind.js";
import { type NodeText, textAt, textsIn } from "./nodes/node-text.js";

export * from "./nodes/agent.js";
export type { AgentTask, AgentTaskSpec } from "./nodes/agent-task.js";
export * from "./nodes/command.js";
export * from "./nodes/commit.js";
export { toOutcome, toRunError } from "./nodes/failure.js";
export * from "./nodes/gate.js";
export * from "./nodes/host-wish.js";
export type * from "./nodes/kind.js";
export type * from "./nodes/node-run.js";
export type { RunnableSpec } from "./nodes/runnable.js";

/** The one table of kinds. A new kind is its file, a row here, and its name in `NodeKind`. */
const TABLE: {
  readonly command: typeof commandKind;
  readonly agent: typeof agentKind;
  readonly gate: typeof gateKind;
  readonly commit: typeof commitKind;
} = { command: commandKind, agent: agentKind, gate: gateKind, commit: commitKind };

type PartsOf<M> = M extends NodeKindModule<infer Spec, infer Node> ? { spec: Spec; node: Node } : never;

/** A node as it is written. */
export type NodeSpec = PartsOf<(typeof TABLE)[NodeKind]>["spec"];

/** A checked node. */
export type BlueprintNode = PartsOf<(typeof TABLE)[NodeKind]>["node"];

/** Every word that may stand as `kind`. */
export type KindWord = NodeSpec["kind"];

/** Other names of the kinds. */
export type NodeKindAlias = Exclude<KindWord, NodeKind>;

/** Every kind of node. */
export const KINDS: readonly NodeKindModule[] = Object.values<NodeKindModule>(TABLE);

/** The kind that a node is of, as it is written or checked. */
export function kindOf({ kind }: { readonly kind: KindWord }): NodeKindModule {
  const found = KINDS.find(({ name, aliases }) => name === kind || aliases.includes(kind));
  if (found !== undefined) return found;
  throw new SandboxError("invalid_argument", `There is no kind of node ${JSON.stringify(kind)}`);
}

/** The agent that a node may start. */
export function agentOf(node: NodeBase): AgentUse | undefined {
  return kindOf(node).agentOf?.(node);
}

/** Every template, condition and script of a node. */
export function textsOf(node: NodeBase): NodeText[] {
  return [...textAt(["when"], node.when, "condition"), ...textsIn(["env"], node.env), ...kindOf(node).textsOf(node)];
}
