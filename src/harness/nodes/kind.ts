import type { Fields } from "../../util/schema.js";
import type { NodeBase, NodeSpecBase, Text } from "../node-types.js";
import type { FieldPath, ReportFault, Written } from "../schema.js";
import type { AgentTask } from "./agent-task.js";
import type { HostWish } from "./host-wish.js";
import type { NodeOutcome, NodeRun, RunView } from "./node-run.js";
import type { NodeText } from "./node-text.js";

/** A node as it is written. */
type AnySpec = NodeSpecBase & { readonly kind: string };

/** The agent that a node may start. */
export interface AgentUse {
  readonly task: AgentTask;
  /** Where it stands in the node; empty: the node is the agent, and its session can be continued. */
  readonly place: FieldPath;
  /** Secrets beside those of the node. */
  readonly secrets: readonly string[];
  /** Variables beside those of the node. */
  readonly env?: Readonly<Record<string, Text>>;
}

/** Everything about one kind of node. The table in `nodes.ts` lists all of them. */
export interface NodeKindModule<Spec extends AnySpec = AnySpec, Node extends NodeBase = NodeBase> {
  readonly name: Node["kind"];
  readonly aliases: readonly Spec["kind"][];
  /** Fields beside those that every node has. */
  readonly properties: Fields<Written<Omit<Spec, keyof AnySpec>>>;
  /** Fields that only say what happens in the sandbox, by their path from the node. Others count as reaching the host. */
  readonly harmless: readonly string[];
  /** Fields that reach the host, and what they ask of it. */
  readonly reaches?: Readonly<Record<string, HostWish>>;
  /** Other names of fields; a checked node has only the names on the right. */
  readonly renamed?: Readonly<Record<string, string>>;
  /** A group of names that some templates of this kind have: those whose text names the group. */
  readonly names?: { readonly group: string; readonly fields: readonly string[]; readonly where: string };
  /** True: a run with such a node that changes nothing is `no_changes`, unless the blueprint says otherwise. */
  readonly expectsChanges?: boolean;
  /** Fills in defaults of a node whose shape is right; reports what is wrong. The order of fields is part of saved hashes. */
  normalize(spec: Spec, place: FieldPath, report: ReportFault): Omit<Node, keyof NodeBase>;
  /** Every template and script of a node, beside `when` and `env`. */
  textsOf(node: Node): readonly NodeText[];
  /** The agent that a node may start. */
  agentOf?(node: Node): AgentUse | undefined;
  /** Checks before the first node whether these nodes can be run here. */
  preflight?(nodes: readonly Node[], state: RunView): Promise<void>;
  run(run: NodeRun, node: Node): Promise<NodeOutcome>;
}
