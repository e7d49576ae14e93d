import { SandboxError } from "../../contracts/errors.js";
import { nearestName } from "../util/nearest.js";
import { claudeCode } from "./agents/claude-code.js";
import { codex } from "./agents/codex.js";
import { customAgent } from "./agents/custom.js";
import { pi } from "./agents/pi.js";
import type { AgentChoice, AgentDriver, AgentTask } from "./types.js";

export { findVersion, isOlder } from "./agents/version.js";

const BUILT_IN: Readonly<Record<string, AgentDriver>> = { "claude-code": claudeCode, codex, pi };

/** The names of the agents that are built in. */
export function agentNames(): string[] {
  return [...Object.keys(BUILT_IN), "command"];
}

/** Finds the driver of an agent task. */
export function driverOf(task: AgentTask, { agents = {}, agent }: AgentChoice = {}): AgentDriver {
  const wanted = agent ?? task.agent;
  if (typeof wanted !== "string") return wanted;
  if (wanted === "command") {
    if (task.command !== undefined) return customAgent(task.command, task.output ?? "text");
    throw new SandboxError("invalid_argument", "agent: command needs a program, which only the blueprint can name", {
      hint: "give the node agent: command and command: [program, argument]",
    });
  }
  return findDriver(wanted, agents);
}

/** Refuses the name of an agent that there is not. */
export function assertAgent(name: string, agents: AgentChoice["agents"] = {}): void {
  if (name !== "command") findDriver(name, agents);
}

function findDriver(wanted: string, agents: NonNullable<AgentChoice["agents"]>): AgentDriver {
  const driver = agents[wanted] ?? (Object.hasOwn(BUILT_IN, wanted) ? BUILT_IN[wanted] : undefined);
  if (driver !== undefined) return driver;
  const known = [...agentNames(), ...Object.keys(agents)];
  const close = nearestName(wanted, known);
  throw new SandboxError("invalid_argument", `There is no agent ${JSON.stringify(wanted)}`, {
    hint: close === undefined ? `the agents are ${known.join(", ")}` : `did you mean ${close}?`,
  });
}
