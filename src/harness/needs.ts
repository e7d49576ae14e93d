import { SandboxError } from "../../contracts/errors.js";
import type { NetworkPolicy } from "../../contracts/types.js";
import { entryText, mergeEntries } from "../sandbox/host.js";
import type { SandboxOptions } from "../sandbox/types.js";
import { defined } from "../util/defined.js";
import { driverOf } from "./agents.js";
import { agentOf } from "./nodes.js";
import type { AgentChoice, AgentDriver, AgentTask, Blueprint, RunLimits } from "./types.js";

/** A variable that a node needs; of several names one is enough. */
export interface SecretNeed {
  readonly nodeId: string;
  readonly names: readonly string[];
}

/** An agent that a node asks for. */
export interface AgentNeed {
  readonly nodeId: string;
  readonly task: AgentTask;
  readonly driver: AgentDriver;
}

/** What a blueprint needs of the sandbox and of the host, known before either is touched. */
export interface BlueprintNeeds {
  readonly network: NetworkPolicy;
  readonly secrets: readonly SecretNeed[];
  readonly agents: readonly AgentNeed[];
}

/**
 * What a blueprint needs. A sandbox's network is fixed when it is opened, so it is the union over all nodes. Refuses
 * what an agent does not support: a list of tools, a session to continue, a cost limit when it does not report its cost.
 */
export function needsOf(
  blueprint: Blueprint,
  choice: AgentChoice & { readonly limits?: Partial<RunLimits> } = {},
): BlueprintNeeds {
  const agents = agentsOf(blueprint, choice);
  const costLimit = choice.limits?.costUsd ?? blueprint.limits.costUsd;
  for (const need of agents) checkAgent(need, costLimit);
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
    agents.flatMap(({ driver, task }) => [...driver.network, ...task.network.allow]),
  );
  return hosts.length + deny.length === 0 ? "none" : { allow: hosts, ...(deny.length > 0 && { deny }) };
}

function agentsOf({ nodes }: Blueprint, choice: AgentChoice): AgentNeed[] {
  return nodes.flatMap((node): AgentNeed[] => {
    const { task } = agentOf(node) ?? {};
    return task === undefined ? [] : [{ nodeId: node.id, task, driver: driverOf(task, choice) }];
  });
}

function checkAgent({ nodeId, task, driver }: AgentNeed, costLimit: number | undefined): void {
  const limit = task.limits.costUsd ?? costLimit;
  if (limit !== undefined && !driver.reportsCost) {
    throw new SandboxError(
      "unsupported",
      `The cost limit of $${limit} cannot be enforced: ${driver.name} in node ${nodeId} does not report what it costs`,
      {
        hint: "leave the cost limit out and use limits of time or turns, or take an agent that reports its cost: claude-code or pi",
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
    const driver = agents.find(({ nodeId }) => nodeId === node.id)?.driver;
    return [...named, ...(driver?.secrets ?? []).map((names) => ({ nodeId: node.id, names }))];
  });
}

/** Takes the values of all needed secrets from where they are; of several names all that are there. */
export function resolveSecrets(
  needs: Pick<BlueprintNeeds, "secrets">,
  source: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const values: Record<string, string> = {};
  for (const { nodeId, names } of needs.secrets) {
    const found = names.filter((name) => (source[name] ?? "") !== "");
    if (found.length === 0) {
      throw new SandboxError("unauthenticated", `Node ${nodeId} needs ${names.join(" or ")}, which is not set`, {
        hint: `export ${names[0] ?? ""}=… before the run; only nodes that name it get it`,
      });
    }
    for (const name of found) values[name] = source[name] ?? "";
  }
  return values;
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
