import { setTimeout as sleep } from "node:timers/promises";
import type { KubeCall, KubeClient } from "../client/kube-client.js";
import { KubeError } from "../client/kube-error.js";
import { type KubeObject, NODES, type ObjectCondition, PODS, type Pod } from "../client/resources.js";
import { eventsOf } from "./events.js";
import { podFailure } from "./pod-failure.js";

interface Node extends KubeObject {
  status?: { conditions?: ObjectCondition[] };
}

/** Why a sandbox's pod no longer answers; undefined while the cluster takes it for alive, so that connecting again may help. */
export async function podLoss(
  client: KubeClient,
  pod: { readonly name: string; readonly uid: string },
  call: KubeCall = {},
): Promise<KubeError | undefined> {
  const { namespace } = client.access;
  const found = await client.find<Pod>(PODS, { namespace, name: pod.name }, call);
  if (found === undefined || found.metadata.uid !== pod.uid)
    return await goneBecause(client, pod, found === undefined, call);
  return podFailure(found) ?? (await nodeLoss(client, found, call));
}

/** Events by which the cluster says that it took a pod away. A pod without a time to end is gone at once, and its conditions with it. */
const TAKEN: Readonly<Record<string, string>> = {
  Preempted: "a pod of a higher priority took its place; see priorityClassName",
  TaintManagerEviction: "its node got a taint, as it does when it is lost or drained",
  NodeControllerEviction: "its node is gone; open another sandbox",
  Evicted: "its node ran out of a resource",
};
/** An event may come a little later than what it says, in milliseconds. */
const LATER = 500;

async function goneBecause(
  client: KubeClient,
  { name, uid }: { readonly name: string; readonly uid: string },
  isGone: boolean,
  call: KubeCall,
): Promise<KubeError> {
  for (let look = 0; look < 2; look++) {
    if (look > 0) await sleep(LATER, undefined, { signal: call.signal });
    const events = await eventsOf(client, { kind: "Pod", name, uid }, call);
    const { reason = "", message = "" } = events.findLast(({ reason: each = "" }) => Object.hasOwn(TAKEN, each)) ?? {};
    if (reason === "") continue;
    const said = `Kubernetes: the pod ${name} was deleted: ${reason}: ${message.trim()}`;
    return new KubeError("backend_lost", said, { reason, hint: TAKEN[reason], retryable: true });
  }
  return replaced(name, isGone);
}

/** The error for a pod that is not there any more, or whose place another one has. */
export function replaced(name: string, isGone: boolean): KubeError {
  const what = isGone ? "was deleted" : "was replaced by another one";
  return new KubeError("backend_lost", `Kubernetes: the pod ${name} ${what}`, {
    reason: "Deleted",
    hint: "an eviction, a drained node or a person may have done that: kubectl get events",
  });
}

/** A node that is cut off does not report its pods as lost for minutes. Many users may not read nodes. */
async function nodeLoss(client: KubeClient, pod: Pod, call: KubeCall): Promise<KubeError | undefined> {
  const name = pod.spec?.nodeName;
  if (name === undefined) return undefined;
  const node = await client.find<Node>(NODES, { namespace: "", name }, call).catch((error: unknown) => {
    call.signal?.throwIfAborted();
    if (error instanceof KubeError && error.status === 403) return undefined;
    throw error;
  });
  const ready = node?.status?.conditions?.find(({ type }) => type === "Ready");
  if (ready === undefined || ready.status === "True") return undefined;
  return new KubeError(
    "unavailable",
    `Kubernetes: the node ${name} of the pod ${pod.metadata.name} is not ready: ${ready.reason}: ${ready.message}`,
    {
      reason: ready.reason,
      hint: "the sandbox ends itself when its lease is over; if the node comes back before that, it goes on",
    },
  );
}
