import { SandboxError } from "../../contracts/errors.js";
import { nearestName } from "../util/nearest.js";
import { acpAgent } from "./agents/acp.js";
import { claudeCode } from "./agents/claude-code.js";
import { codex } from "./agents/codex.js";
import { copilot } from "./agents/copilot.js";
import { customAgent } from "./agents/custom.js";
import { geminiCli } from "./agents/gemini-cli.js";
import { opencode } from "./agents/opencode.js";
import { pi } from "./agents/pi.js";
import type { AgentChoice, AgentDriver, AgentTask } from "./types.js";

export { accessOf, assertService } from "./agents/access.js";
export { httpsHost } from "./agents/https-host.js";
export { added, noTokens } from "./agents/token-usage.js";
export { findVersion, versionFault } from "./agents/version.js";

const BUILT_IN: Readonly<Record<string, AgentDriver>> = {
  "claude-code": claudeCode,
  codex,
  copilot,
  "gemini-cli": geminiCli,
  opencode,
  pi,
};

/** Those whose program the blueprint names. */
const OF_A_COMMAND: Readonly<Record<string, (command: readonly string[], task: AgentTask) => AgentDriver>> = {
  acp: (command) => acpAgent(command),
  command: (command, { output }) => customAgent(command, output ?? "text"),
};

/** The names of the agents that are built in. */
export function agentNames(): string[] {
  return [...Object.keys(BUILT_IN), ...Object.keys(OF_A_COMMAND)];
}

/** The drivers of the agents that are built in. */
export function builtInAgents(): AgentDriver[] {
  return Object.values(BUILT_IN);
}

/** The names of the agents that start MCP servers. */
export function mcpAgentNames(): string[] {
  const own = Object.entries(BUILT_IN).filter(([, { startsMcp }]) => startsMcp === true);
  return [...own.map(([name]) => name), "acp"];
}

/** The hosts that each built-in agent needs of its provider, as entries of `network.allow`. */
export function agentHosts(): Readonly<Record<string, readonly string[]>> {
  return Object.fromEntries(Object.entries(BUILT_IN).map(([name, { network = [] }]) => [name, network]));
}

/** Finds the driver of an agent task. */
export function driverOf(task: AgentTask, { agents = {}, agent }: AgentChoice = {}): AgentDriver {
  const wanted = agent ?? task.agent;
  if (typeof wanted !== "string") return wanted;
  const make = Object.hasOwn(OF_A_COMMAND, wanted) ? OF_A_COMMAND[wanted] : undefined;
  if (make !== undefined) {
    if (task.command !== undefined) return make(task.command, task);
    throw new SandboxError("invalid_argument", `agent: ${wanted} needs a program, which only the blueprint can name`, {
      hint: `give the node agent: ${wanted} and command: [program, argument]`,
    });
  }
  return findDriver(wanted, agents);
}

/** Refuses the name of an agent that there is not. */
export function assertAgent(name: string, agents: AgentChoice["agents"] = {}): void {
  if (!Object.hasOwn(OF_A_COMMAND, name)) findDriver(name, agents);
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
