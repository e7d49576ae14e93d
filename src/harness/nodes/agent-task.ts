import type { NetworkRule } from "../../../contracts/types.js";
import { defined } from "../../util/defined.js";
import type { Fields } from "../../util/schema.js";
import * as is from "../../util/schema.js";
import type { AgentDriver, AgentMcpServer, LimitsSpec, RunLimits, Text } from "../node-types.js";
import { type FieldPath, fields, type ReportFault, toLimits, type Written } from "../schema.js";
import { type HostWish, wishForHosts } from "./host-wish.js";
import { type NodeText, textAt } from "./node-text.js";

/** How an agent is asked. */
export interface AgentTask {
  /** The name of an agent, such as `claude-code`; `acp` or `command` for a program of your own; or, in code, a driver. */
  readonly agent: string | AgentDriver;
  /** The program of `agent: command`, which reads the prompt from stdin, or of `agent: acp`, which speaks that protocol. */
  readonly command?: readonly string[];
  /** How the output of a custom agent is read. Default `text`. */
  readonly output?: "text" | "events";
  readonly prompt: Text;
  readonly systemPrompt?: Text;
  readonly model?: string;
  readonly tools?: readonly string[];
  /** More arguments of the agent's program, in the words of its own CLI. */
  readonly args?: readonly string[];
  /** MCP servers that the agent starts in the sandbox, by their names. */
  readonly mcp?: Readonly<Record<string, AgentMcpServer>>;
  /** Continue the session of this node. */
  readonly continue?: string;
  readonly network: { readonly allow: readonly (string | NetworkRule)[] };
  readonly limits: Partial<RunLimits>;
}

/** How an agent is asked, as it is written. `agent` is `claude-code` by default. */
export interface AgentTaskSpec extends Partial<Omit<AgentTask, "prompt" | "network" | "limits">> {
  prompt: Text;
  /** Another name of `tools`. */
  allowedTools?: readonly string[];
  network?: Partial<AgentTask["network"]>;
  limits?: LimitsSpec;
}

/** Agents make the names of tools from it. */
const serverName = is.string({ pattern: "^[A-Za-z][A-Za-z0-9_-]{0,31}$" });

/** The fields of an agent's task. */
export const TASK_FIELDS: Fields<Written<AgentTaskSpec>> = {
  agent: is.noted(fields.name, {
    description: "claude-code, codex, copilot, gemini-cli, opencode, pi, or acp or command for a program of your own.",
  }),
  command: is.noted(fields.argv, {
    description: "The program of agent: command, which reads the prompt from stdin, or of agent: acp.",
  }),
  output: is.noted(is.oneOf("text", "events"), { description: "How the output of agent: command is read." }),
  prompt: is.required(fields.text),
  systemPrompt: fields.text,
  model: fields.name,
  tools: is.noted(fields.texts, { description: "What the agent may use, in the words of its own CLI." }),
  allowedTools: fields.texts,
  args: is.noted(fields.texts, { description: "More arguments of the agent's program, in the words of its own CLI." }),
  mcp: is.noted(
    is.record(is.object<AgentMcpServer>({ command: is.required(fields.argv), env: fields.variables }), serverName),
    {
      maxProperties: 32,
      description: "MCP servers that the agent starts in the sandbox, by their names. They get no templates.",
    },
  ),
  continue: is.noted(fields.id, { description: "Continue the session of this node." }),
  network: is.object({ allow: is.noted(fields.hosts, { description: "Hosts beside those that the agent needs." }) }),
  limits: fields.limits,
};

/** The ones that only say what happens in the sandbox. */
export const HARMLESS_TASK_FIELDS: readonly string[] = [
  ...["command", "output", "prompt", "systemPrompt", "model", "tools", "args", "mcp", "continue"],
  ...Object.keys(fields.limits.properties ?? {}).map((field) => `limits.${field}`),
];

/** The ones that reach the host. An agent gets its key and its service; a program of the blueprint gets neither. */
export const REACHING_TASK_FIELDS: Readonly<Record<"agent" | "network.allow", HostWish>> = {
  agent: (value) => (isOfCommand(value) ? undefined : `the key and the network of the agent ${value}`),
  "network.allow": wishForHosts,
};

/** Whether the blueprint names the program of an agent. */
function isOfCommand(agent: unknown): agent is "command" | "acp" {
  return agent === "command" || agent === "acp";
}

/** Fills in the defaults of a task. */
export function toTask(spec: AgentTaskSpec, place: FieldPath, report: ReportFault): AgentTask {
  const { agent = "claude-code", command, output } = spec;
  if (isOfCommand(agent) && command === undefined) {
    report({ place, message: `agent: ${agent} needs the program in command, for example [node, agent.mjs]` });
  }
  if (!isOfCommand(agent) && command !== undefined) {
    report({ place: [...place, "command"], message: "command is for agent: command and agent: acp only" });
  }
  if (agent !== "command" && output !== undefined) {
    report({ place: [...place, "output"], message: "output is for agent: command only" });
  }
  if (isOfCommand(agent) && spec.args !== undefined) {
    report({ place: [...place, "args"], message: "put them into command: args is for agents that are built in" });
  }
  if (spec.tools !== undefined && spec.allowedTools !== undefined) {
    report({ place: [...place, "allowedTools"], message: "is another name of tools; give one of them" });
  }
  return {
    agent,
    prompt: spec.prompt,
    network: { allow: spec.network?.allow ?? [] },
    limits: toLimits(spec.limits, [...place, "limits"], report),
    ...defined({
      command,
      output,
      systemPrompt: spec.systemPrompt,
      model: spec.model,
      tools: spec.tools ?? spec.allowedTools,
      args: spec.args,
      mcp: spec.mcp,
      continue: spec.continue,
    }),
  };
}

/** The templates of a task. */
export function textsOfTask(place: FieldPath, { prompt, systemPrompt }: AgentTask): NodeText[] {
  return [...textAt([...place, "prompt"], prompt), ...textAt([...place, "systemPrompt"], systemPrompt)];
}
