import { isIP } from "node:net";
import { SandboxError } from "../../../../contracts/errors.js";
import type { NetworkPolicy } from "../../../../contracts/types.js";
import { parseRules } from "../../egress.js";
import type { DaytonaDriver } from "./driver.js";
import { persist } from "./failure.js";
import { assertNetwork, type NetworkSettings, networkSettings } from "./network-settings.js";

/** Runs work that needs a remote that the network rule blocks. Meanwhile the machine reaches only that remote, and must be idle. */
export async function withRemoteAccess<T>(
  driver: DaytonaDriver,
  network: NetworkPolicy,
  url: string,
  work: () => Promise<T>,
): Promise<T> {
  const { hostname } = new URL(url);
  if (network === "full" || (network !== "none" && parseRules(network).isAllowed(hostname, 443))) {
    return await work();
  }
  if (!driver.isIdle) {
    throw new SandboxError("conflict", `The network rule blocks ${hostname}, and processes still run in the sandbox`, {
      retryable: false,
      hint: "end those processes, or open the sandbox with a network that reaches the remote",
    });
  }
  const { remote } = driver;
  await remote.updateNetworkSettings({ networkBlockAll: false, ...only(hostname) });
  try {
    return await work();
  } finally {
    await close(driver, networkSettings(network), only(hostname));
  }
}

/** Restores the rule, or closes the channel so that no command runs without it. */
async function close(driver: DaytonaDriver, rule: NetworkSettings, opened: NetworkSettings): Promise<void> {
  const { remote } = driver;
  const cleared = Object.fromEntries(Object.keys(opened).map((key) => [key, ""]));
  try {
    await persist(() => remote.updateNetworkSettings(rule.networkBlockAll === true ? rule : { ...cleared, ...rule }));
    assertNetwork(remote, rule);
  } catch (error) {
    driver.closeChannel();
    throw new SandboxError("backend_lost", "The network rule could not be restored after a push", { cause: error });
  }
}

function only(hostname: string): NetworkSettings {
  return isIP(hostname) === 4 ? { networkAllowList: `${hostname}/32` } : { domainAllowList: hostname };
}
