import type { Sandbox } from "@vercel/sandbox";
import type { NetworkPolicy } from "../../../../contracts/types.js";
import { toNames } from "../../egress.js";

/** A network policy in the service's terms. */
export type ServicePolicy = "allow-all" | "deny-all" | { allow: string[] };

/** Translates a network rule into a policy of the service. */
export function toPolicy(network: NetworkPolicy): ServicePolicy {
  if (network === "full") return "allow-all";
  // An empty list of names would be a policy without a rule.
  if (network === "none" || network.allow.length === 0) return "deny-all";
  return { allow: toNames(network.allow) };
}

/** Whether a machine has this policy, both now and when it is resumed: the service stores the two separately. */
export function hasPolicy(sandbox: Sandbox, policy: ServicePolicy): boolean {
  return [sandbox.currentSession().networkPolicy, sandbox.networkPolicy].every((has) => isSame(has, policy));
}

function isSame(has: Sandbox["networkPolicy"], wanted: ServicePolicy): boolean {
  if (typeof has !== "object" || typeof wanted !== "object") return has === wanted;
  // We never set subnets or rules for single hosts.
  const { allow, subnets } = has;
  if (!Array.isArray(allow) || subnets !== undefined) return false;
  return JSON.stringify([...allow].sort()) === JSON.stringify([...wanted.allow].sort());
}
