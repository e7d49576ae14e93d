import { defined } from "../../util/defined.js";
import type { Fields } from "../../util/schema.js";
import * as is from "../../util/schema.js";
import type { AgentDriver, LimitsSpec, RunLimits, Text } from "../node-types.js";
import { type FieldPath, fields, type ReportFault, toLimits, type Written } from "../schema.js";
import { type HostWish, wishForHosts } from "./host-wish.js";
import { type NodeText, textAt } from "./node-text.js";

/** How an agent is asked. */
export interface AgentTask {
  /** `claude-code`, `codex`, `pi`, `command`, or, in code, a driver. */
  readonly agent: string | AgentDriver;
  /** The program of a custom agent (`agent: command`), which reads the prompt from stdin. */
  readonly command?: readonly string[];
  /** How the output of a custom agent is read. Default `text`. */
  readonly output?: "text" | "events";
  readonly prompt: Text;
  readonly systemPrompt?: Text;
  readonly model?: string;
  readonly tools?: readonly string[];
  /** Continue the session of this node. */
  readonly continue?: string;
  readonly network: { readonly allow: readonly string[] };
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

/** The fields of an agent's task. */
export const TASK_FIELDS: Fields<Written<AgentTaskSpec>> = {
  agent: is.noted(fields.name, { description: "claude-code, codex, pi, or command for a program of your own." }),
  command: is.noted(fields.argv, { description: "The program of agent: command. It reads the prompt from stdin." }),
  output: is.noted(is.oneOf("text", "events"), { description: "How the output of agent: command is read." }),
  prompt: is.required(fields.text),
  systemPrompt: fields.text,
  model: fields.name,
  tools: is.noted(fields.texts, { description: "What the agent may use, in the words of its own CLI." }),
  allowedTools: fields.texts,
  continue: is.noted(fields.id, { description: "Continue the session of this node." }),
  network: is.object({ allow: is.noted(fields.hosts, { description: "Hosts beside those that the agent needs." }) }),
  limits: fields.limits,
};

/** The ones that only say what happens in the sandbox. */
export const HARMLESS_TASK_FIELDS: readonly string[] = [
  ...["command", "output", "prompt", "systemPrompt", "model", "tools", "continue"],
  ...Object.keys(fields.limits.properties ?? {}).map((field) => `limits.${field}`),
];

/** The ones that reach the host. An agent gets its key and its service; a program of the blueprint gets neither. */
export const REACHING_TASK_FIELDS: Readonly<Record<"agent" | "network.allow", HostWish>> = {
  agent: (value) => (value === "command" ? undefined : `the key and the network of the agent ${value}`),
  "network.allow": wishForHosts,
};

/** Fills in the defaults of a task. */
export function toTask(spec: AgentTaskSpec, place: FieldPath, report: ReportFault): AgentTask {
  const { agent = "claude-code", command, output } = spec;
  if (agent === "command" && command === undefined) {
    report({ place, message: "agent: command needs the program in command, for example [node, agent.mjs]" });
  }
  if (agent !== "command" && (command !== undefined || output !== undefined)) {
    const field = command === undefined ? "output" : "command";
    report({ place: [...place, field], message: `${field} is for agent: command only` });
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
      continue: spec.continue,
    }),
  };
}

/** The templates of a task. */
export function textsOfTask(place: FieldPath, { prompt, systemPrompt }: AgentTask): NodeText[] {
  return [...textAt([...place, "prompt"], prompt), ...textAt([...place, "systemPrompt"], systemPrompt)];
}
