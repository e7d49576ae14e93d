import type { KubeCall, KubeClient } from "../client/kube-client.js";
import { KubeError } from "../client/kube-error.js";
import { type KubeObject, NODES, type ObjectCondition, PODS, type Pod } from "../client/resources.js";
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
  if (found === undefined || found.metadata.uid !== pod.uid) return replaced(pod.name, found === undefined);
  return podFailure(found) ?? (await nodeLoss(client, found, call));
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
