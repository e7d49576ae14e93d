import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Habits } from "./habits.js";
import { KINDS } from "./kinds.js";
import type { PodNetwork } from "./network.js";
import { type PodMount, type PodOrder, type RunningPod, startContainer } from "./pod-process.js";
import { parseQuantity } from "./rules.js";
import { now, type Store, type Stored } from "./store.js";

/** What each step of a start takes. */
const STEP = 10;
const NODE = "node-1";
const NODE_LABELS = {
  "kubernetes.io/os": "linux",
  "kubernetes.io/arch": process.arch === "x64" ? "amd64" : process.arch,
};
const CAPACITY = { cpu: "8", memory: "16Gi" };

/** The one node of the cluster: gives pods a place, runs their first container, and reports what becomes of it. */
export class Kubelet {
  readonly #store: Store;
  readonly #folder: string;
  readonly #habits: Habits;
  readonly #running = new Map<string, RunningPod>();
  readonly #network: PodNetwork;

  constructor(store: Store, folder: string, habits: Habits, network: PodNetwork) {
    this.#network = network;
    this.#store = store;
    this.#folder = folder;
    this.#habits = habits;
    const node = store.create(kindOf("Node"), "", { metadata: { name: NODE, labels: NODE_LABELS } });
    store.update(node, (copy) => {
      copy["status"] = {
        capacity: CAPACITY,
        allocatable: CAPACITY,
        conditions: [{ type: "Ready", status: "True" }],
        nodeInfo: { architecture: NODE_LABELS["kubernetes.io/arch"] },
      };
    });
  }

  runningOf(uid: string): RunningPod | undefined {
    return this.#running.get(uid);
  }

  /** Takes a pod that was just made. */
  async take(pod: Stored): Promise<void> {
    try {
      await this.#run(pod);
    } catch (error) {
      if (this.#isThere(pod)) throw error;
    }
  }

  async #run(pod: Stored): Promise<void> {
    await delay(STEP);
    while (this.#whyNoPlace(pod) !== undefined) {
      const message = this.#whyNoPlace(pod) ?? "";
      if (!this.#isThere(pod)) return;
      this.#set(pod, (status) => {
        status.conditions = [condition("PodScheduled", "False", "Unschedulable", message)];
      });
      this.event(pod, "Warning", "FailedScheduling", message);
      await delay(STEP * 10);
    }
    const container = pod["spec"].containers[0];
    this.#store.update(pod, (copy) => {
      copy["spec"].nodeName = NODE;
      copy["status"].conditions = [condition("PodScheduled", "True")];
      copy["status"].containerStatuses = [statusOf(container, { waiting: { reason: "ContainerCreating" } })];
    });
    await delay(STEP);
    if (!this.#habits.images.has(container.image)) return await this.#reportImage(pod, container);
    const address = this.#network.nextAddress();
    const order = this.#orderOf(pod, container, address);
    const context = { ...pod["spec"].securityContext, ...container.securityContext };
    if (context.runAsNonRoot === true && order.uid === 0) {
      const message = "container has runAsNonRoot and image will run as root";
      return this.#waits(pod, container, "CreateContainerConfigError", message);
    }
    const running = await startContainer(order);
    if (!this.#isThere(pod)) return running.kill();
    this.#running.set(pod.metadata.uid, running);
    const startedAt = now();
    this.#set(pod, (status) => {
      Object.assign(status, {
        phase: "Running",
        podIP: address,
        podIPs: [{ ip: address }],
        hostIP: "127.0.0.1",
        startTime: startedAt,
      });
      status.conditions = [
        condition("PodScheduled", "True"),
        condition("Ready", "True"),
        condition("ContainersReady", "True"),
      ];
      status.containerStatuses = [statusOf(container, { running: { startedAt } }, true)];
    });
    const { code, log } = await running.ended;
    this.#running.delete(pod.metadata.uid);
    if (this.#isThere(pod)) this.#report(pod, container, code, log, startedAt);
  }

  /** Ends a pod with a reason of the node's own, as `Evicted`. */
  evict(pod: Stored, reason: string, message: string): void {
    this.#set(pod, (status) => Object.assign(status, { phase: "Failed", reason, message }));
    this.#running.get(pod.metadata.uid)?.kill();
  }

  /** The kernel kills the container's first process for its memory. */
  killForMemory(pod: Stored): void {
    this.#habits.oomKilled.add(pod.metadata.uid);
    this.#running.get(pod.metadata.uid)?.kill();
  }

  /** Ends a pod that is to go, and lets it go. */
  async stop(pod: Stored): Promise<void> {
    const running = this.#running.get(pod.metadata.uid);
    running?.kill();
    await running?.ended;
    this.#store.remove(pod);
  }

  async stopAll(): Promise<void> {
    const all = [...this.#running.values()];
    for (const running of all) running.kill();
    await Promise.all(all.map(({ ended }) => ended));
  }

  /** Records what a component has to say about an object. */
  event(object: Stored, type: "Normal" | "Warning", reason: string, message: string): void {
    const { name, namespace = "", uid } = object.metadata;
    this.#store.create(kindOf("Event"), namespace, {
      metadata: { generateName: `${name}.` },
      involvedObject: { kind: object.kind, name, namespace, uid },
      ...{ type, reason, message, count: 1, lastTimestamp: now() },
    });
  }

  #report(pod: Stored, container: { name: string; image: string }, code: number, log: string, startedAt: string): void {
    const isOom = this.#habits.oomKilled.delete(pod.metadata.uid);
    const reason = isOom ? "OOMKilled" : code === 0 ? "Completed" : "Error";
    const terminated = {
      exitCode: code,
      reason,
      startedAt,
      finishedAt: now(),
      ...(code !== 0 && log !== "" && { message: log.slice(-2_048) }),
    };
    this.#set(pod, (status) => {
      if (status.phase !== "Failed") status.phase = code === 0 ? "Succeeded" : "Failed";
      status.containerStatuses = [statusOf(container, { terminated })];
    });
  }

  async #reportImage(pod: Stored, container: { name: string; image: string }): Promise<void> {
    const message = `rpc error: code = NotFound desc = failed to pull and unpack image "${container.image}": not found`;
    this.event(pod, "Warning", "Failed", `Failed to pull image "${container.image}": ${message}`);
    this.#waits(pod, container, "ErrImagePull", message);
    await delay(STEP * 5);
    this.#waits(pod, container, "ImagePullBackOff", `Back-off pulling image "${container.image}"`);
  }

  #waits(pod: Stored, container: { name: string; image: string }, reason: string, message: string): void {
    if (!this.#isThere(pod)) return;
    this.#set(pod, (status) => {
      status.containerStatuses = [statusOf(container, { waiting: { reason, message } })];
    });
  }

  /** Why the pod has no place on the node, in the scheduler's words. */
  #whyNoPlace({ spec }: Stored): string | undefined {
    const labels: Readonly<Record<string, string>> = NODE_LABELS;
    const isOther = Object.entries((spec.nodeSelector ?? {}) as Record<string, string>).some(
      ([key, value]) => labels[key] !== value,
    );
    if (isOther) return "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity.";
    for (const container of spec.containers) {
      for (const [name, amount] of Object.entries((container.resources?.requests ?? {}) as Record<string, string>)) {
        const all = (CAPACITY as Record<string, string>)[name];
        if (all === undefined || (parseQuantity(amount) ?? 0) > (parseQuantity(all) ?? 0))
          return `0/1 nodes are available: 1 Insufficient ${name}.`;
      }
    }
    return undefined;
  }

  // biome-ignore lint/suspicious/noExplicitAny: a container as it was checked before.
  #orderOf(pod: Stored, container: any, address: string): PodOrder {
    const context = { ...pod["spec"].securityContext, ...container.securityContext };
    const { namespace = "" } = pod.metadata;
    const sources = new Map<string, { path: string; isReadOnly: boolean }>();
    for (const volume of pod["spec"].volumes ?? []) sources.set(volume.name, this.#volume(pod, volume));
    const mounts: PodMount[] = (container.volumeMounts ?? []).map(
      ({
        name,
        mountPath,
        subPath = "",
        readOnly = false,
      }: {
        name: string;
        mountPath: string;
        subPath?: string;
        readOnly?: boolean;
      }) => {
        const { path, isReadOnly } = sources.get(name) ?? { path: "", isReadOnly: true };
        const source = join(path, subPath);
        mkdirSync(source, { recursive: true });
        return { source, target: mountPath, isReadOnly: readOnly || isReadOnly };
      },
    );
    const env = Object.fromEntries(
      (container.env ?? []).map(({ name, value = "" }: { name: string; value?: string }) => [name, value]),
    );
    return {
      folder: this.#folder,
      argv: [...(container.command ?? ["sleep", "infinity"]), ...(container.args ?? [])],
      env,
      uid: context.runAsUser ?? 0,
      gid: context.runAsGroup ?? 0,
      mounts,
      hosts: hostsOf(pod, address),
      connect: (pid) => {
        const group = this.#habits.enforcesPolicies ? this.#groupOf(pod, namespace) : "";
        if (group !== undefined) this.#network.connect(pid, address, group);
      },
    };
  }

  /**
   * Whom a pod may send to: everybody (empty), those that a policy selects, or nobody (undefined). It is decided when the pod starts, for good, and
   * for both directions. Policies add up.
   */
  #groupOf({ metadata }: Stored, namespace: string): string | undefined {
    const own = this.#store.list("NetworkPolicy", namespace).filter(({ spec }) => {
      const wanted = Object.entries((spec.podSelector.matchLabels ?? {}) as Record<string, string>);
      const isSelected = wanted.every(([key, value]) => metadata.labels?.[key] === value);
      return isSelected && (spec.policyTypes ?? []).includes("Egress");
    });
    if (own.length === 0) return "";
    const peers = own.flatMap(({ spec }) => (spec.egress ?? []).flatMap(({ to = [] }: { to?: object[] }) => to));
    if (peers.some((peer: object) => "ipBlock" in peer)) return "";
    const others = own.flatMap(({ spec }) =>
      (spec.ingress ?? []).flatMap(({ from = [] }: { from?: object[] }) => from),
    );
    // A pod that lets nobody in has no use for a way to its peers here.
    if (peers.length === 0 || JSON.stringify(peers) !== JSON.stringify(others)) return undefined;
    return this.#habits.ignoresPeers ? "any" : JSON.stringify(peers);
  }

  // biome-ignore lint/suspicious/noExplicitAny: as above.
  #volume(pod: Stored, volume: any): { path: string; isReadOnly: boolean } {
    const { namespace = "", uid } = pod.metadata;
    const own = join(this.#folder, "volumes", uid, volume.name);
    if (volume.persistentVolumeClaim !== undefined) {
      const claim = this.#store.find("PersistentVolumeClaim", namespace, volume.persistentVolumeClaim.claimName);
      return { path: join(this.#folder, "claims", claim?.metadata.uid ?? "none"), isReadOnly: false };
    }
    mkdirSync(own, { recursive: true });
    if (volume.configMap === undefined) return { path: own, isReadOnly: false };
    const map = this.#store.find("ConfigMap", namespace, volume.configMap.name);
    const mode = volume.configMap.defaultMode ?? 0o644;
    for (const [name, text] of Object.entries((map?.["binaryData"] ?? {}) as Record<string, string>)) {
      writeFileSync(join(own, name), Buffer.from(text, "base64"), { mode });
    }
    for (const [name, text] of Object.entries((map?.["data"] ?? {}) as Record<string, string>))
      writeFileSync(join(own, name), text, { mode });
    return { path: own, isReadOnly: true };
  }

  #isThere({ metadata, kind }: Stored): boolean {
    return this.#store.find(kind, metadata.namespace ?? "", metadata.name)?.metadata.uid === metadata.uid;
  }

  // biome-ignore lint/suspicious/noExplicitAny: the status of a pod, which only this writes.
  #set(pod: Stored, change: (status: any) => void): void {
    this.#store.update(pod, (copy) => change(copy["status"]));
  }
}

/** What the kubelet writes into a pod's `/etc/hosts`. */
function hostsOf({ metadata, spec }: Stored, address: string): string {
  const aliases = (spec.hostAliases ?? []) as { ip: string; hostnames: string[] }[];
  const own = { ip: address, hostnames: [spec.hostname ?? metadata.name] };
  const all = [{ ip: "127.0.0.1", hostnames: ["localhost"] }, own, ...aliases];
  return all.map(({ ip, hostnames }) => `${ip}\t${hostnames.join("\t")}\n`).join("");
}

function kindOf(kind: string): (typeof KINDS)[number] {
  return KINDS.find((each) => each.kind === kind) as (typeof KINDS)[number];
}

function condition(type: string, status: string, reason?: string, message?: string): object {
  return { type, status, lastTransitionTime: now(), ...(reason && { reason, message }) };
}

function statusOf({ name, image }: { name: string; image: string }, state: object, ready = false): object {
  return { name, image, imageID: "", ready, started: ready, restartCount: 0, state };
}
