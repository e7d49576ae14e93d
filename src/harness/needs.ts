import { SandboxError } from "../../contracts/errors.js";
import type { NetworkPolicy } from "../../contracts/types.js";
import { entryText, mergeEntries } from "../sandbox/host.js";
import type { SandboxOptions } from "../sandbox/types.js";
import { defined } from "../util/defined.js";
import { accessOf, assertService, builtInAgents, driverOf, mcpAgentNames } from "./agents.js";
import { agentOf } from "./nodes.js";
import type {
  AgentAccess,
  AgentChoice,
  AgentDriver,
  AgentSetting,
  AgentTask,
  Blueprint,
  BlueprintNode,
  RunLimits,
  Text,
} from "./types.js";

/** A variable that a node needs; of several names one is enough. */
export interface SecretNeed {
  readonly nodeId: string;
  readonly names: readonly string[];
  /** The agent that needs it, and what it needs for its service. */
  readonly access?: AgentAccess;
}

/** An agent that a node asks for. */
export interface AgentNeed {
  readonly nodeId: string;
  readonly task: AgentTask;
  readonly driver: AgentDriver;
  /** What it needs for the service that the node has chosen. */
  readonly access: AgentAccess;
  /** What the node says about that service. */
  readonly setting: AgentSetting;
  /** Files of `sandbox.home` that have its login. */
  readonly logins: readonly string[];
}

/** How the agents of a blueprint are chosen, and what the run sets for them. */
export interface NeedsChoice extends AgentChoice {
  readonly limits?: Partial<RunLimits>;
  /** Variables of all nodes, on top of those of the blueprint's sandbox. */
  readonly env?: Readonly<Record<string, string>>;
}

/** What a blueprint needs of the sandbox and of the host, known before either is touched. */
export interface BlueprintNeeds {
  readonly network: NetworkPolicy;
  readonly secrets: readonly SecretNeed[];
  readonly agents: readonly AgentNeed[];
}

/**
 * What a blueprint needs. A sandbox's network is fixed when it is opened, so it is the union over all nodes. Refuses
 * what an agent does not support: a list of tools, a session to continue, MCP servers, a cost limit when it does not report its cost.
 */
export function needsOf(blueprint: Blueprint, choice: NeedsChoice = {}): BlueprintNeeds {
  const agents = agentsOf(blueprint, choice);
  const costLimit = choice.limits?.costUsd ?? blueprint.limits.costUsd;
  for (const need of agents) {
    checkAgent(need, costLimit);
    checkMcp(need, blueprint);
  }
  return {
    network: networkOf(blueprint.sandbox, agents),
    secrets: secretsOf(blueprint, agents),
    agents,
  };
}

function networkOf({ allow, deny = [], network }: Blueprint["sandbox"], agents: readonly AgentNeed[]): NetworkPolicy {
  if (network === "full" && deny.length > 0) {
    throw new SandboxError(
      "invalid_argument",
      `sandbox.deny (${deny.map(entryText).join(", ")}) needs a list of hosts`,
      {
        hint: 'list them in sandbox.allow; network: "full" has no proxy that could deny something',
      },
    );
  }
  if (network === "full") return "full";
  const hosts = mergeEntries(
    allow,
    agents.flatMap(({ access, logins, task }) => [
      ...access.network,
      ...logins.flatMap((path) => access.logins?.[path] ?? []),
      ...task.network.allow,
    ]),
  );
  return hosts.length + deny.length === 0 ? "none" : { allow: hosts, ...(deny.length > 0 && { deny }) };
}

function agentsOf(blueprint: Blueprint, choice: NeedsChoice): AgentNeed[] {
  return blueprint.nodes.flatMap((node): AgentNeed[] => {
    const { task } = agentOf(node) ?? {};
    if (task === undefined) return [];
    const driver = driverOf(task, choice);
    const setting = { env: environmentOf(blueprint, node, choice), ...modelOf(task, choice) };
    const builtIn = builtInAgents();
    if (builtIn.includes(driver)) assertService(node.id, driver, setting, builtIn);
    const access = accessOf(driver, setting);
    const logins = Object.keys(access.logins ?? {}).filter((path) => Object.hasOwn(blueprint.sandbox.home ?? {}, path));
    return [{ nodeId: node.id, task, driver, access, setting, logins }];
  });
}

function modelOf(task: AgentTask, { model = task.model }: AgentChoice): { model?: string } {
  return model === undefined ? {} : { model };
}

/** The variables of an agent that are known before the run: those that are made while it runs choose no service. */
function environmentOf({ sandbox }: Blueprint, node: BlueprintNode, { env = {} }: NeedsChoice): Record<string, string> {
  const own = Object.entries({ ...node.env, ...agentOf(node)?.env });
  const isKnown = (value: Text): value is string => typeof value === "string" && !value.includes("{{");
  const texts = own.flatMap(([name, value]) => (isKnown(value) ? [[name, value] as const] : []));
  return { ...sandbox.env, ...env, ...Object.fromEntries(texts) };
}

/** Refuses MCP servers that the agent would not start, and a file of the user's in the place of the agent's own with these servers. */
function checkMcp({ nodeId, task, driver }: AgentNeed, { sandbox: { home = {} } }: Blueprint): void {
  if (task.mcp === undefined) return;
  if (driver.startsMcp !== true) {
    throw new SandboxError("unsupported", `${driver.name} does not start MCP servers, which node ${nodeId} declares`, {
      hint: `leave mcp out, or take another agent: ${mcpAgentNames().join(", ")}`,
    });
  }
  const files = Object.keys(driver.command({ prompt: "", mcp: task.mcp }).homeFiles ?? {});
  const taken = files.find((path) => Object.hasOwn(home, path));
  if (taken === undefined) return;
  const why = `sandbox.home has ~/${taken}, in which ${driver.name} gets the MCP servers of node ${nodeId}`;
  throw new SandboxError("conflict", why, {
    retryable: false,
    hint: "declare the servers in that file and leave mcp out, or leave the file out",
  });
}

function checkAgent({ nodeId, task, driver }: AgentNeed, costLimit: number | undefined): void {
  const limit = task.limits.costUsd ?? costLimit;
  if (limit !== undefined && !driver.reportsCost) {
    throw new SandboxError(
      "unsupported",
      `The cost limit of $${limit} cannot be enforced: ${driver.name} in node ${nodeId} does not report what it costs`,
      {
        hint: "leave the cost limit out and use limits of time or turns, or take an agent that reports its cost: claude-code, opencode or pi",
      },
    );
  }
  for (const wish of driver.cannot ?? []) {
    if (task[wish] === undefined) continue;
    throw new SandboxError("unsupported", `${driver.name} does not support ${wish} of node ${nodeId}`, {
      hint: `leave ${wish} out, or take another agent`,
    });
  }
}

function secretsOf({ nodes }: Blueprint, agents: readonly AgentNeed[]): SecretNeed[] {
  return nodes.flatMap((node): SecretNeed[] => {
    const named = [...node.secrets, ...(agentOf(node)?.secrets ?? [])].map((name) => ({
      nodeId: node.id,
      names: [name],
    }));
    const { access, logins = [] } = agents.find(({ nodeId }) => nodeId === node.id) ?? {};
    // A login takes the place of all variables.
    if (access === undefined || logins.length > 0) return named;
    return [...named, ...access.secrets.map((names) => ({ nodeId: node.id, names, access }))];
  });
}

/**
 * Takes the values of all needed secrets from where they are; of several names all that are there. `elsewhere` has the names of those whose values the
 * sandbox itself fetches.
 */
export function resolveSecrets(
  needs: Pick<BlueprintNeeds, "secrets">,
  source: Readonly<Record<string, string | undefined>>,
  elsewhere: readonly string[] = [],
): Record<string, string> {
  const values: Record<string, string> = {};
  const isSet = (name: string): boolean => (source[name] ?? "") !== "";
  for (const { nodeId, names, access } of needs.secrets) {
    const found = names.filter((name) => isSet(name) && !elsewhere.includes(name));
    if (found.length === 0 && !names.some((name) => elsewhere.includes(name))) throw missing(nodeId, names, access);
    for (const name of found) {
      const { with: others = [], maybeWith = [] } = access?.keys?.[name] ?? {};
      const lacking = others.find((other) => !isSet(other));
      if (lacking !== undefined) throw missing(nodeId, [lacking], undefined, `, beside ${name}`);
      for (const each of [name, ...others, ...maybeWith.filter(isSet)]) values[each] = source[each] ?? "";
    }
  }
  return values;
}

function missing(nodeId: string, names: readonly string[], access?: AgentAccess, beside = ""): SandboxError {
  const files = Object.keys(access?.logins ?? {}).map((path) => `~/${path}`);
  const login = files.length === 0 ? "" : `; or copy a login in by sandbox.home: ${files.join(", ")}`;
  const what = `Node ${nodeId} needs ${names.join(" or ")}${beside}, which is not set`;
  return new SandboxError("unauthenticated", what, {
    hint: `export ${names[0]}=… before the run; only nodes that name it get it${login}`,
  });
}

/** How the sandbox of a blueprint is opened. */
export function sandboxOptionsOf(blueprint: Blueprint, needs: Pick<BlueprintNeeds, "network">): SandboxOptions {
  const { image, workspace, env, limits, mounts, secrets } = blueprint.sandbox;
  return {
    network: needs.network,
    env,
    runTimeout: blueprint.limits.wall,
    ...defined({ image, workspace, limits, secrets }),
    ...(mounts.length > 0 && { mounts }),
  };
}
