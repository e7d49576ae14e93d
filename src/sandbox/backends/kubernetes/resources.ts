import { rm } from "node:fs/promises";
import type { Resource } from "../../../../contracts/backend.js";
import { SandboxError } from "../../../../contracts/errors.js";
import { snapshotIds } from "../../../ledger.js";
import { removeGitResource } from "../../git.js";
import type { ClusterChoice } from "./client/kubeconfig.js";
import { JOBS } from "./client/resources.js";
import { clusterOf } from "./clusters.js";

/** A Job, as recorded in the ledger. */
export interface JobResource {
  readonly kind: "job";
  readonly name: string;
  readonly cluster: ClusterChoice;
  readonly [field: string]: unknown;
}

/** Removes a recorded resource. One that doesn't exist is no error. */
export async function removeResource(resource: Resource): Promise<void> {
  if (await removeGitResource(resource)) return;
  const { kind, name, cluster, path, snapshot } = resource as Partial<Omit<JobResource, "kind">> & Resource;
  if (kind === "archive") {
    // It belongs to its snapshot as soon as that is known, and to nobody before.
    if (!(await snapshotIds()).includes(String(snapshot))) await rm(String(path), { force: true });
    return;
  }
  if (kind !== "job") {
    throw new SandboxError("unsupported", `The kubernetes backend has no resource of the kind "${kind}"`);
  }
  if (typeof name !== "string" || cluster === undefined || cluster === null) {
    throw new SandboxError("tampered", "A record names a Job without a name or a cluster");
  }
  const client = await clusterOf(cluster as ClusterChoice);
  await client.delete(JOBS, { namespace: client.access.namespace, name }, { propagation: "Background" });
}
