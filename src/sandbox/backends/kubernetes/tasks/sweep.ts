import { reapRecords } from "../../../lifecycle.js";
import type { KubeClient } from "../client/kube-client.js";
import { JOBS, type Job, type KubeObject, NETWORK_POLICIES } from "../client/resources.js";
import { isAbandoned, KEPT_LABEL, MANAGED, TASK_LABEL } from "../labels.js";
import { removeResource } from "../resources.js";

/** Removes what dead processes left: of this ledger, and the policies and pods of tasks that no ledger here knows. */
export async function sweepTasks(client: KubeClient): Promise<void> {
  const { namespace } = client.access;
  await reapRecords(async () => (resource) => removeResource(resource), { backend: "kubernetes" });
  const managed = Object.entries(MANAGED).map(([key, value]) => `${key}=${value}`);
  const labels = [...managed, TASK_LABEL, `!${KEPT_LABEL}`].join(",");
  const remove = async <T extends KubeObject>(kind: typeof JOBS): Promise<void> => {
    const { items } = await client.list<T>(kind, { namespace }, { labels });
    for (const { metadata } of items) {
      if (isAbandoned(metadata)) await client.delete(kind, { namespace, name: metadata.name }, { uid: metadata.uid });
    }
  };
  await remove<Job>(JOBS);
  await remove(NETWORK_POLICIES);
}
