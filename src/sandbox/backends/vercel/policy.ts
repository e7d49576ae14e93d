import type { Sandbox } from "@vercel/sandbox";
import type { NetworkPolicy } from "../../../../contracts/types.js";

/** A policy as the service takes it. */
export type ServicePolicy = "allow-all" | "deny-all" | { allow: string[] };

/** What the service is asked for. */
export function toPolicy(network: NetworkPolicy): ServicePolicy {
  if (network === "full") return "allow-all";
  // A list without names would be a policy without a rule.
  if (network === "none" || network.allow.length === 0) return "deny-all";
  return { allow: [...network.allow] };
}

/**
 * Whether a machine is held to this policy, now and whenever it is resumed. The service keeps the two apart, and a machine of
 * which it does not say so is not.
 */
export function hasPolicy(sandbox: Sandbox, policy: ServicePolicy): boolean {
  return [sandbox.currentSession().networkPolicy, sandbox.networkPolicy].every((has) => isSame(has, policy));
}

function isSame(has: Sandbox["networkPolicy"], wanted: ServicePolicy): boolean {
  if (typeof has !== "object" || typeof wanted !== "object") return has === wanted;
  // Networks and rules for single hosts are never of ours.
  const { allow, subnets } = has;
  if (!Array.isArray(allow) || subnets !== undefined) return false;
  return JSON.stringify([...allow].sort()) === JSON.stringify([...wanted.allow].sort());
}
