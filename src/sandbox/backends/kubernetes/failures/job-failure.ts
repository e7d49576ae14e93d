import type { KubeCall, KubeClient } from "../client/kube-client.js";
import { KubeError, statusError } from "../client/kube-error.js";
import { JOBS, type Job } from "../client/resources.js";
import { eventsOf } from "./events.js";

/** What a pod template is refused for is a fault of the request; quotas pass. */
const FORBIDDEN = /^Error creating: (.+)$/s;

/**
 * Why a Job has no pod. A Job is accepted, and then the cluster fails to make its pod, for a quota, a security standard or a missing service account:
 * only an event says so. Undefined if nothing failed yet, or if we may not read events.
 */
export async function jobFailure(
  client: KubeClient,
  name: string,
  call: KubeCall = {},
): Promise<KubeError | undefined> {
  const { namespace } = client.access;
  const items = await eventsOf(client, { kind: "Job", name }, call);
  const failed = items.filter(({ reason }) => reason === "FailedCreate").at(-1);
  const said = FORBIDDEN.exec(failed?.message ?? "")?.[1];
  if (said !== undefined)
    return statusError("make the pod of a sandbox", { code: codeOf(said), reason: "FailedCreate", message: said });
  const job = await client.find<Job>(JOBS, { namespace, name }, call);
  if (job === undefined)
    return new KubeError("backend_lost", `Kubernetes: the Job ${name} was deleted`, { reason: "Deleted" });
  const over = job.status?.conditions?.find(({ type, status }) => type === "Failed" && status === "True");
  if (over === undefined) return undefined;
  const code = over.reason === "DeadlineExceeded" ? "limit_exceeded" : "backend_lost";
  return new KubeError(code, `Kubernetes: the Job ${name} failed: ${over.reason}: ${over.message}`, {
    reason: over.reason,
    retryable: false,
  });
}

/** The status that the answer to a create of the pod itself would have had. */
function codeOf(message: string): number {
  if (/is forbidden/.test(message)) return 403;
  if (/is invalid/.test(message)) return 422;
  if (/not found/.test(message)) return 404;
  return 503;
}
