import type { AgentAccess, AgentDriver, AgentSetting } from "../types.js";

/** What an agent needs to reach the service that its node has chosen. */
export function accessOf(driver: AgentDriver, setting: AgentSetting): AgentAccess {
  const provider = driver.providers?.find(({ isChosen }) => isChosen(setting));
  return provider === undefined ? driver : provider.access(setting);
}
