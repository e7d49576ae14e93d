import { defined } from "../../util/defined.js";
import type { NodeBase, NodeSpecBase } from "../node-types.js";
import {
  type AgentTask,
  type AgentTaskSpec,
  HARMLESS_TASK_FIELDS,
  REACHING_TASK_FIELDS,
  TASK_FIELDS,
  textsOfTask,
  toTask,
} from "./agent-task.js";
import type { NodeKindModule } from "./kind.js";

export interface AgentSpec extends NodeSpecBase, AgentTaskSpec {
  kind: "agent" | "agentic";
}

export interface AgentNode extends NodeBase, AgentTask {
  readonly kind: "agent";
}

/** A coding agent. */
export const agentKind: NodeKindModule<AgentSpec, AgentNode> = {
  name: "agent",
  aliases: ["agentic"],
  properties: TASK_FIELDS,
  harmless: HARMLESS_TASK_FIELDS,
  reaches: REACHING_TASK_FIELDS,
  renamed: { allowedTools: "tools" },
  normalize: toTask,
  textsOf: (node) => textsOfTask([], node),
  agentOf: (task) => ({ task, place: [], secrets: [] }),
  run({ agent }, node) {
    const { id, env, secrets, cwd, timeout } = node;
    return agent({
      ...{ task: node, nodeId: id, env, secrets },
      ...defined({ cwd, timeout }),
    });
  },
};

/** A coding agent. */
export function agent(spec: Omit<AgentSpec, "kind">): AgentSpec {
  return { ...spec, kind: "agent" };
}

/** Another name of `agent`. */
export function agentic(spec: Omit<AgentSpec, "kind">): AgentSpec {
  return { ...spec, kind: "agentic" };
}
