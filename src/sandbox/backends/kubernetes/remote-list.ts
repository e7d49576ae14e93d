import type { RemoteSandboxInfo } from "../../../../contracts/backend.js";
import { JOBS, type Job } from "./client/resources.js";
import { clusterOf, lastingChoice } from "./clusters.js";
import { MANAGED, readMarks, SANDBOX_LABEL } from "./labels.js";
import { removeResource } from "./resources.js";

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
  const { items } = await client.list<Job>(JOBS, { namespace }, { labels: [...managed, SANDBOX_LABEL].join(",") });
  return items.flatMap(({ metadata, status }) => {
    const marks = readMarks(metadata);
    // The cluster itself removes what has ended.
    const isEnded = metadata.deletionTimestamp !== undefined || status?.conditions?.some(({ type }) => OVER.has(type));
    if (marks === undefined || isEnded === true) return [];
    const remove = (): Promise<void> => removeResource({ kind: "job", name: metadata.name, cluster });
    return [{ ...marks, remove }];
  });
}

const OVER: ReadonlySet<string> = new Set(["Complete", "Failed"]);
