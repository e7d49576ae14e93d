import type {
  ContainerEngine,
  EngineImage,
  ImageRequest,
  NetworkRequest,
} from "../../../../contracts/container-engine.js";
import { SandboxError } from "../../../../contracts/errors.js";
import type { KubeClient } from "./client/kube-client.js";
import { clusterOf, lastingChoice } from "./clusters.js";
import type { KubernetesOptions } from "./kubernetes-options.js";
import { architectureOf } from "./manifests/job.js";
import { kubernetesOptions } from "./options.js";
import { readImageConfig } from "./registry/image-config.js";
import { arrange } from "./tasks/arrange.js";
import type { TaskPlace } from "./tasks/plan-task-pod.js";
import { sweepTasks } from "./tasks/sweep.js";
import { removeTaskContainer, startTaskContainer } from "./tasks/task-container.js";
import { TaskNetwork } from "./tasks/task-network.js";

const LEASE = 60_000;
/** The version of Kubernetes 1 from which a pod may let everybody bind low ports. */
const LOW_PORTS = 22;

/** Opens a cluster for batches and tasks: each container is a pod of its own. */
export async function openContainerEngine(given: KubernetesOptions = {}): Promise<ContainerEngine> {
  const { kubeconfig, context, namespace, lease = LEASE, ...options } = checked(given);
  const client = await clusterOf({ kubeconfig, context, namespace });
  const place: TaskPlace = {
    client,
    cluster: lastingChoice({ kubeconfig, context, namespace }, client),
    lease,
    options,
    hasLowPorts: await hasLowPorts(client),
  };
  const networks = new Map<string, TaskNetwork>();
  return {
    name: "kubernetes",
    ensureImage: (request, { signal }) => ensureImage(request, architectureOf(options), signal),
    arrange,
    async createNetwork(request: NetworkRequest) {
      const network = new TaskNetwork(client, request);
      networks.set(request.name, network);
      return network.id;
    },
    startContainer: (request, signal) =>
      startTaskContainer(place, request, networks.get(request.network?.name ?? ""), signal),
    removeContainer: removeTaskContainer,
    async removeNetwork(name) {
      for (const [key, network] of networks) {
        if (key !== name && network.id !== name) continue;
        // Its containers are gone, and the policy with the first of them, unless that one was never made.
        await network.remove();
        networks.delete(key);
      }
    },
    // There are none: nothing is built or committed.
    removeImage: async () => undefined,
    sweep: () => sweepTasks(client),
    // The client is that of all sandboxes of this process.
    close: () => undefined,
  };
}

/** Refuses what belongs to each container, and not to all of them. */
function checked(given: KubernetesOptions): KubernetesOptions {
  const options = kubernetesOptions.parse(given);
  for (const option of ["image", "workDir"] as const) {
    if (options[option] === undefined) continue;
    throw new SandboxError(
      "invalid_argument",
      `Option kubernetes.${option} is for sandboxes: the containers of a task have their own`,
    );
  }
  return options;
}

async function hasLowPorts(client: KubeClient): Promise<boolean> {
  const version = await client.call<{ major?: string; minor?: string }>({ method: "GET", path: "/version" });
  return version.major === "1" && Number.parseInt(version.minor ?? "", 10) >= LOW_PORTS;
}

/** A node pulls the image when a pod needs it. What it says of itself only its registry knows, and is asked for where it matters. */
async function ensureImage(
  { tag, build, isRun }: ImageRequest,
  architecture: string,
  signal: AbortSignal,
): Promise<EngineImage> {
  if (build !== undefined) {
    throw new SandboxError(
      "unsupported",
      `The kubernetes backend can't build the image "${tag}": a cluster builds no images`,
      {
        backend: "kubernetes",
        hint: `build it and push it to a registry that the nodes can reach, then use { type: "pull", tag: "<registry>/${tag}" }`,
      },
    );
  }
  const unknown = { id: tag, env: {}, entrypoint: [], cmd: [], workingDir: "", user: "", volumes: [] };
  return isRun ? { ...unknown, ...(await readImageConfig(tag, architecture, signal)) } : unknown;
}
