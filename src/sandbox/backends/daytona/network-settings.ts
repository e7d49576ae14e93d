import { isIP } from "node:net";
import { SandboxError } from "../../../../contracts/errors.js";
import type { NetworkPolicy } from "../../../../contracts/types.js";
import { toNames } from "../../egress.js";
import type { RemoteSandbox } from "./client.js";
import { statusOf, toFailure } from "./failure.js";

/** A network rule in the service's terms. */
export interface NetworkSettings {
  networkBlockAll?: boolean;
  /** Names, separated by commas. */
  domainAllowList?: string;
  /** Address blocks, separated by commas. */
  networkAllowList?: string;
}

/** Translates a network rule. Ports, and names together with addresses, can't be enforced. */
export function networkSettings(network: NetworkPolicy = "full"): NetworkSettings {
  if (network === "full") return {};
  if (network === "none" || network.allow.length === 0) return { networkBlockAll: true };
  const allow = toNames(network.allow);
  const addresses = allow.filter((entry) => isIP(entry) === 4);
  const withColon = allow.find((entry) => entry.includes(":"));
  if (withColon !== undefined) throw unsupported(withColon, "it allows names and IPv4 addresses, without ports");
  if (addresses.length === 0) return { domainAllowList: allow.join(",") };
  if (addresses.length === allow.length) return { networkAllowList: addresses.map((each) => `${each}/32`).join(",") };
  throw unsupported(addresses[0] ?? "", "it allows names or addresses, not both");
}

/** A rule that the service accepted but does not report is not in effect. */
export function assertNetwork(remote: RemoteSandbox, settings: NetworkSettings): void {
  for (const [key, wanted] of Object.entries(settings) as [keyof NetworkSettings, string | boolean][]) {
    if (normal(remote[key]) === normal(wanted)) continue;
    throw new SandboxError("unsupported", `Daytona: the sandbox did not get its network rule (${key} ${wanted})`, {
      hint: 'use network: "full", which every account allows',
    });
  }
}

/** Organisations of a lower tier can't choose their network: that is a refusal of the service, not a wrong argument. */
export function refusedNetwork(error: unknown, network: NetworkSettings): SandboxError {
  const failure = toFailure(error, "the sandbox could not be made");
  const asked = Object.keys(network).length > 0;
  if (!asked || ![400, 403].includes(statusOf(error) ?? 0) || !/network|domain/i.test(failure.message)) return failure;
  return new SandboxError("unsupported", failure.message, {
    cause: error,
    hint: 'use network: "full", which this account allows',
  });
}

function normal(value: unknown): string {
  const parts = String(value).split(",");
  return parts
    .map((part) => part.trim())
    .sort()
    .join(",");
}

function unsupported(entry: string, why: string): SandboxError {
  return new SandboxError("unsupported", `The daytona backend can't enforce network.allow "${entry}": ${why}`);
}
