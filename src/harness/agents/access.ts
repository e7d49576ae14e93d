import { SandboxError } from "../../../contracts/errors.js";
import type { AgentAccess, AgentDriver, AgentProvider, AgentSetting } from "../types.js";

/** What an agent needs to reach the service that its node has chosen. */
export function accessOf(driver: AgentDriver, setting: AgentSetting): AgentAccess {
  return chosenOf(driver, setting)?.access(setting) ?? driver;
}

function chosenOf({ providers }: AgentDriver, setting: AgentSetting): AgentProvider | undefined {
  return providers?.find(({ isChosen }) => isChosen(setting));
}

/** How a model says that it is one of a cloud's. */
const CLOUDS: Readonly<Record<string, string>> = {
  "amazon-bedrock": "Bedrock",
  "google-vertex": "Vertex AI",
  "google-vertex-anthropic": "Vertex AI",
};

/** Refuses a model of a cloud's service that the agent does not reach, or chooses in another way. `others` are all agents that there are. */
export function assertService(
  nodeId: string,
  driver: AgentDriver,
  setting: AgentSetting,
  others: readonly AgentDriver[],
): void {
  const { model = "" } = setting;
  const service = CLOUDS[model.split("/", 1)[0] ?? ""];
  if (service === undefined || !model.includes("/") || chosenOf(driver, setting)?.name === service) return;
  const own = driver.providers?.find(({ name }) => name === service);
  if (own !== undefined) {
    throw new SandboxError(
      "invalid_argument",
      `${driver.name} does not choose ${service} by the model of node ${nodeId}`,
      {
        hint: `choose it by ${own.by}, and name the model as ${service} does`,
      },
    );
  }
  const able = others.filter(({ providers = [] }) => providers.some(({ name }) => name === service));
  throw new SandboxError(
    "unsupported",
    `${driver.name} does not reach ${service}, which the model ${model} of node ${nodeId} is from`,
    {
      hint: `take an agent that does: ${able.map(({ name }) => name).join(", ")}`,
    },
  );
}
