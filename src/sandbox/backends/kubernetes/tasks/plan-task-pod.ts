import type { ContainerRequest } from "../../../../../contracts/container-engine.js";
import type { KubeClient } from "../client/kube-client.js";
import type { ClusterChoice } from "../client/kubeconfig.js";
import { ensureIsolation } from "../isolation.js";
import type { KubernetesOptions } from "../kubernetes-options.js";
import { marksOf, TASK_LABEL } from "../labels.js";
import { ensureGuest } from "../manifests/guest-config-map.js";
import { architectureOf } from "../manifests/job.js";
import { deadlineOf, type KubernetesPlan } from "../plan.js";
import { idFor, type TaskNetwork } from "./task-network.js";

/** Where the pods of tasks are made, and how. */
export interface TaskPlace {
  readonly client: KubeClient;
  readonly cluster: ClusterChoice;
  /** In milliseconds. */
  readonly lease: number;
  readonly options: Omit<KubernetesOptions, "kubeconfig" | "context" | "namespace" | "lease">;
  /** Whether the cluster lets a pod bind low ports without a capability. */
  readonly hasLowPorts: boolean;
}

/** Plans the pod of a container, and makes sure that it will be restricted. */
export async function planTaskPod(
  { client, cluster, options, lease, hasLowPorts }: TaskPlace,
  request: ContainerRequest,
  network: TaskNetwork | undefined,
  signal: AbortSignal,
): Promise<KubernetesPlan> {
  const { name, image, hostname, user, limits } = request;
  const { cpu, memory, ...rest } = options.resources ?? {};
  // What one container is given wins over what all of them are given.
  const resources = {
    ...rest,
    ...(cpu !== undefined && limits.cpus === undefined && { cpu }),
    ...(memory !== undefined && limits.memory === undefined && { memory }),
  };
  const own = { ...options, resources, ...(user !== "" && { user }) };
  const guest = await ensureGuest(client, architectureOf(own), { signal });
  const where = { namespace: client.access.namespace, image, guest, options: own };
  const reach = network?.isInternal === false ? "full" : "none";
  const task = network?.isShared === true ? network.id : undefined;
  await ensureIsolation(client, reach, { ...where, ...(task !== undefined && { taskNetwork: task }) }, { signal });
  const { labels, annotations } = marksOf({ id: idFor(name), keep: false, name, labels: request.labels });
  return {
    cluster,
    network: reach,
    source: "task",
    lease,
    pod: {
      ...where,
      name: `glovebox-${idFor(name)}`,
      argv: ["serve", "--linked", String(Math.ceil(lease / 1_000)), "/"],
      workDir: "/",
      limits,
      network: reach,
      labels: { ...labels, ...(task !== undefined && { [TASK_LABEL]: task }) },
      annotations,
      ...deadlineOf({ keep: false }),
      task: { hostname, hosts: network?.hosts() ?? {}, isInternal: reach === "none", hasLowPorts },
    },
  };
}
