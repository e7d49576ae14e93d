import type { KubeCall, KubeClient } from "../client/kube-client.js";
import { hasStatus } from "../client/kube-error.js";
import { type ClusterEvent, EVENTS } from "../client/resources.js";

/** What the cluster has said about an object, the oldest first. Nothing where events may not be read. */
export async function eventsOf(
  client: KubeClient,
  { kind, name, uid }: { kind: string; name: string; uid?: string },
  call: KubeCall,
): Promise<ClusterEvent[]> {
  const { namespace } = client.access;
  const fields = [
    `involvedObject.kind=${kind},involvedObject.name=${name}`,
    ...(uid === undefined ? [] : [`involvedObject.uid=${uid}`]),
  ].join(",");
  try {
    return (await client.list<ClusterEvent>(EVENTS, { namespace }, { fields }, call)).items;
  } catch (error) {
    call.signal?.throwIfAborted();
    if (hasStatus(error, 403)) return [];
    throw error;
  }
}
