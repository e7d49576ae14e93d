import type { NetworkPolicy } from "../../../../contracts/types.js";
import type { TreeBase } from "../../git.js";
import type { ContainerPlan } from "./container-config.js";
import type { EndpointChoice } from "./engine/endpoint.js";

/** How a sandbox was created, as written to the ledger. Plain data and no secrets, so never `env`. */
export interface KeptPlan {
  readonly engine: EndpointChoice;
  readonly plan: ContainerPlan;
  readonly network: NetworkPolicy;
  /** The environment of the image. */
  readonly imageEnv: Readonly<Record<string, string>>;
  /** How many layers the container's image has. */
  readonly layers: number;
  /** Where the files come from. A snapshot can be restored only where this is the same. */
  readonly source: string;
  /** Whether the container's bundle of authorities may have one of ours. */
  readonly trusts?: true;
  /** The commit that the files started from, where there is a repository. */
  readonly base?: TreeBase;
}

/** The plan of a kept sandbox. Version 0.1 called what is now `guest` by another name. */
export function readKeptPlan(saved: unknown): KeptPlan {
  const kept = saved as KeptPlan & { plan: { agent?: ContainerPlan["guest"] } };
  const { agent, ...plan } = kept.plan;
  return agent === undefined ? kept : { ...kept, plan: { ...plan, guest: agent } };
}
