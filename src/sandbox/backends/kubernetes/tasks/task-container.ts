import type { ContainerRequest, EngineContainer } from "../../../../../contracts/container-engine.js";
import { SandboxError } from "../../../../../contracts/errors.js";
import type { Capabilities } from "../../../../../contracts/types.js";
import { createRecord, markReady, removeRecorded } from "../../../../ledger.js";
import { failpoint } from "../../../../machine/failpoint.js";
import { startCommand } from "../../../guest.js";
import { createSandbox } from "../../../portable.js";
import { baseEnvOf } from "../base-env.js";
import { KUBERNETES_CAPABILITIES } from "../capabilities.js";
import { KubernetesDriver } from "../driver.js";
import { forgetGuest } from "../manifests/guest-config-map.js";
import type { KubernetesPlan } from "../plan.js";
import { type ClusterResource, removeResource } from "../resources.js";
import { type RunningPod, startPod } from "../start-pod.js";
import { planTaskPod, type TaskPlace } from "./plan-task-pod.js";
import { idFor, type TaskNetwork } from "./task-network.js";

const CAPABILITIES: Capabilities = {
  isolation: "container",
  killTree: "descendants",
  network: ["none", "full"],
  limits: ["memory", "cpus"],
  snapshot: "none",
  fork: "none",
  pty: true,
  user: false,
  combinedOutput: true,
  ports: false,
  git: false,
  reasons: KUBERNETES_CAPABILITIES.reasons ?? {},
};

/** Starts a container of a task as a pod of its own, or leaves nothing. */
export async function startTaskContainer(
  place: TaskPlace,
  request: ContainerRequest,
  network: TaskNetwork | undefined,
  signal: AbortSignal,
): Promise<EngineContainer> {
  const plan = await planTaskPod(place, request, network, signal);
  try {
    await makeNetwork(plan, request, network, signal);
    const pod = await startPod(place.client, plan, { signal, onWait: request.onWarning });
    try {
      await failpoint("create.started");
      await joinNetwork(plan, pod, request, network, signal);
      return await containerOf(plan, pod, request);
    } catch (error) {
      await pod.stop().catch(() => undefined);
      throw error;
    }
  } catch (error) {
    // A pod whose ConfigMap somebody has removed never starts. The next one looks for it again.
    forgetGuest(place.client);
    // What can't be removed now stays in the ledger for `reap`.
    await removeTaskContainer(request.name).catch(() => undefined);
    throw error;
  }
}

/** Removes what the record of a container names. What doesn't exist is no error. */
export async function removeTaskContainer(name: string): Promise<void> {
  await removeRecorded(
    idFor(name),
    () => true,
    async () => (resource) => removeResource(resource),
  );
}

/** Writes down what will be made. The first container of a task has its policy, too. */
async function makeNetwork(
  { cluster, pod: { name, labels, annotations } }: KubernetesPlan,
  request: ContainerRequest,
  network: TaskNetwork | undefined,
  signal: AbortSignal,
): Promise<void> {
  let isRecorded = false;
  const record = async (...before: readonly ClusterResource[]): Promise<void> => {
    const resources: readonly ClusterResource[] = [...before, { kind: "job", name, cluster }];
    await createRecord({ id: idFor(request.name), backend: "kubernetes", workDir: "/", resources });
    isRecorded = true;
    await failpoint("create.recorded");
  };
  await network?.ensure(async () => {
    await record({ kind: "policy", name: network.policyName, cluster });
    return { labels, annotations };
  }, signal);
  if (!isRecorded) await record();
}

async function joinNetwork(
  { pod: { name } }: KubernetesPlan,
  { address }: RunningPod,
  { hostname, isService }: ContainerRequest,
  network: TaskNetwork | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (network?.isShared !== true) return;
  if (address === "")
    throw new SandboxError("unsupported", "The pods of this cluster have no address", { backend: "kubernetes" });
  network.add(hostname, address);
  // The agent's pod is the last, and without it the task is over.
  if (!isService) await network.belongTo(name, signal);
}

async function containerOf(plan: KubernetesPlan, pod: RunningPod, request: ContainerRequest): Promise<EngineContainer> {
  const id = idFor(request.name);
  const env = { ...baseEnvOf(pod.env, plan.pod), ...request.env };
  // The image's own commands start where the guest did.
  const workingDir = request.workingDir || pod.env["PWD"] || "/";
  const driver: KubernetesDriver = new KubernetesDriver({
    id,
    workDir: "/",
    capabilities: CAPABILITIES,
    baseEnv: env,
    pod,
    operations: () => ({}),
    async release() {
      await pod.stop();
      await removeTaskContainer(request.name);
    },
  });
  const sandbox = createSandbox(driver, {
    onEvent: ({ type, message }) => {
      if (type === "warning") request.onWarning(message);
    },
  });
  await driver.makeDirectory(workingDir);
  await sandbox.setWorkdir(workingDir);
  markReady(id);
  const cannotCopy = async (): Promise<never> => {
    throw new SandboxError(
      "unsupported",
      "The kubernetes backend can't clone a task: a cluster makes no image of a pod's files",
      {
        backend: "kubernetes",
        hint: "set the task up again, or run it on Docker",
      },
    );
  };
  return {
    id,
    sandbox,
    start: (argv) =>
      startCommand(pod.channel, { argv, env, cwd: workingDir, stdin: "none" }, workingDir.replace(/^\/+/, "")),
    commit: cannotCopy,
    copyFrom: cannotCopy,
    frozen: (work) => driver.frozen(work),
    async remove() {
      await sandbox.teardown();
      await removeTaskContainer(request.name);
    },
  };
}
