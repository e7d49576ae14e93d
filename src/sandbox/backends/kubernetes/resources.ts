import { rm } from "node:fs/promises";
import type { Resource } from "../../../../contracts/backend.js";
import { SandboxError } from "../../../../contracts/errors.js";
import { snapshotIds } from "../../../ledger.js";
import { removeGitResource } from "../../git.js";
import type { ClusterChoice } from "./client/kubeconfig.js";
import { JOBS, NETWORK_POLICIES } from "./client/resources.js";
import { clusterOf } from "./clusters.js";
import { removeClaim } from "./warm/claim.js";

/** A Job, a claim of a pool's pod or the NetworkPolicy of a task, as recorded in the ledger. */
export interface ClusterResource {
  readonly kind: "job" | "claim" | "policy";
  readonly name: string;
  readonly cluster: ClusterChoice;
  readonly [field: string]: unknown;
}

/** Removes a recorded resource. One that doesn't exist is no error. */
export async function removeResource(resource: Resource): Promise<void> {
  if (await removeGitResource(resource)) return;
  const { kind, name, cluster, path, snapshot } = resource as Partial<Omit<ClusterResource, "kind">> & Resource;
  if (kind === "archive") {
    // It belongs to its snapshot as soon as that is known, and to nobody before.
    if (!(await snapshotIds()).includes(String(snapshot))) await rm(String(path), { force: true });
    return;
  }
  if (kind !== "job" && kind !== "claim" && kind !== "policy") {
    throw new SandboxError("unsupported", `The kubernetes backend has no resource of the kind "${kind}"`);
  }
  if (typeof name !== "string" || cluster === undefined || cluster === null) {
    throw new SandboxError("tampered", `A record names a ${kind} without a name or a cluster`);
  }
  const client = await clusterOf(cluster as ClusterChoice);
  if (kind === "claim") return await removeClaim(client, name);
  const place = { namespace: client.access.namespace, name };
  await client.delete(kind === "job" ? JOBS : NETWORK_POLICIES, place, { propagation: "Background" });
}
