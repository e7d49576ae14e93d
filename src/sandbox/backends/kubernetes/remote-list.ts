import type { RemoteSandboxInfo } from "../../../../contracts/backend.js";
import type { KubeClient, ObjectSelector } from "./client/kube-client.js";
import { hasStatus, isUnknownKind } from "./client/kube-error.js";
import { JOBS, type Job, SANDBOX_CLAIMS } from "./client/resources.js";
import { clusterOf, lastingChoice } from "./clusters.js";
import { MANAGED, readMarks, SANDBOX_LABEL } from "./labels.js";
import { type ClusterResource, removeResource } from "./resources.js";
import type { Claim } from "./warm/claim.js";

/**
 * Our sandboxes in the namespace of the current context, found by their labels. Empty unless the environment chooses this backend: a kubeconfig may be
 * there for other work, and its cluster slow, or reached through a login.
 */
export async function listRemote(): Promise<RemoteSandboxInfo[]> {
  if (process.env["GLOVEBOX_BACKEND"] !== "kubernetes") return [];
  const client = await clusterOf({});
  const cluster = lastingChoice({}, client);
  const managed = Object.entries(MANAGED).map(([key, value]) => `${key}=${value}`);
  const { namespace } = client.access;
  const selector = { labels: [...managed, SANDBOX_LABEL].join(",") };
  const [{ items: jobs }, claims] = await Promise.all([
    client.list<Job>(JOBS, { namespace }, selector),
    listClaims(client, selector),
  ]);
  const infoOf = ({ metadata, status }: Job | Claim, kind: ClusterResource["kind"]): RemoteSandboxInfo[] => {
    const marks = readMarks(metadata);
    // The cluster itself removes what has ended.
    const isEnded = metadata.deletionTimestamp !== undefined || status?.conditions?.some(({ type }) => OVER.has(type));
    if (marks === undefined || isEnded === true) return [];
    const remove = (): Promise<void> => removeResource({ kind, name: metadata.name, cluster });
    return [{ ...marks, remove }];
  };
  return [...jobs.flatMap((job) => infoOf(job, "job")), ...claims.flatMap((claim) => infoOf(claim, "claim"))];
}

/** Many clusters have no claims, and many users no right to them. */
async function listClaims(client: KubeClient, selector: ObjectSelector): Promise<Claim[]> {
  const { namespace } = client.access;
  try {
    return (await client.list<Claim>(SANDBOX_CLAIMS, { namespace }, selector)).items;
  } catch (error) {
    if (isUnknownKind(error) || hasStatus(error, 403)) return [];
    throw error;
  }
}

const OVER: ReadonlySet<string> = new Set(["Complete", "Failed", "Finished"]);
