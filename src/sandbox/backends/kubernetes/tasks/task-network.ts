import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { NetworkRequest } from "../../../../../contracts/container-engine.js";
import { SandboxError } from "../../../../../contracts/errors.js";
import type { KubeClient } from "../client/kube-client.js";
import { hasStatus } from "../client/kube-error.js";
import { JOBS, type Job, type KubeObject, NETWORK_POLICIES } from "../client/resources.js";
import { taskPolicyManifest, taskPolicyName, taskPolicySpec } from "../manifests/network-policy.js";

/** What an object is named for: short, and of few characters. */
export function idFor(name: string): string {
  return createHash("sha256").update(name).digest("hex").slice(0, 16);
}

/** The labels and annotations of the policy. */
type Marks = Parameters<typeof taskPolicyManifest>[1];

/** The network of one task: a policy that lets its pods reach each other, and the names that they have. */
export class TaskNetwork {
  /** On its pods. */
  readonly id: string;
  readonly isInternal: boolean;
  /** Whether there is more than one pod. */
  readonly isShared: boolean;
  readonly #client: KubeClient;
  /** Names by addresses. */
  readonly #hosts = new Map<string, string[]>();
  #policy: Promise<void> | undefined;

  constructor(client: KubeClient, { name, internal, members }: NetworkRequest) {
    this.id = idFor(name);
    this.isInternal = internal;
    this.isShared = members > 1;
    this.#client = client;
  }

  get policyName(): string {
    return taskPolicyName(this.id);
  }

  /** Makes the policy, if that was not done. `record`: writes down that it will be there, and returns its marks. */
  async ensure(record: () => Promise<Marks>, signal: AbortSignal): Promise<void> {
    if (!this.isShared) return;
    this.#policy ??= record().then((marks) => this.#make(marks, signal));
    await this.#policy;
  }

  /** What a pod that starts now finds by name. */
  hosts(): Record<string, readonly string[]> {
    return Object.fromEntries(this.#hosts);
  }

  add(hostname: string, address: string): void {
    this.#hosts.set(address, [...(this.#hosts.get(address) ?? []), hostname]);
  }

  /** From now on the cluster removes the policy when this Job is gone, whatever becomes of us. */
  async belongTo(job: string, signal: AbortSignal): Promise<void> {
    if (!this.isShared) return;
    const { namespace } = this.#client.access;
    const { metadata } = await this.#client.get<Job>(JOBS, { namespace, name: job }, { signal });
    const owner = { apiVersion: JOBS.api, kind: "Job", name: job, uid: metadata.uid };
    const place = { namespace, name: this.policyName };
    await this.#client.patch(NETWORK_POLICIES, place, { metadata: { ownerReferences: [owner] } }, { signal });
  }

  /** Removes the policy, if it is still there. */
  async remove(): Promise<void> {
    const { namespace } = this.#client.access;
    if (this.isShared) await this.#client.delete(NETWORK_POLICIES, { namespace, name: this.policyName });
  }

  async #make(marks: Marks, signal: AbortSignal): Promise<void> {
    const { namespace } = this.#client.access;
    try {
      await this.#client.create(NETWORK_POLICIES, { namespace }, taskPolicyManifest(this.id, marks), { signal });
    } catch (error) {
      if (!hasStatus(error, 409)) throw error;
      // Its name is ours alone: a create whose answer was lost has made it.
      const place = { namespace, name: this.policyName };
      const found = await this.#client.get<KubeObject & { spec?: unknown }>(NETWORK_POLICIES, place, { signal });
      if (isDeepStrictEqual(found.spec, JSON.parse(JSON.stringify(taskPolicySpec(this.id))))) return;
      throw new SandboxError("tampered", `The NetworkPolicy ${this.policyName} does not say what Glovebox wrote`, {
        backend: "kubernetes",
        hint: `kubectl delete networkpolicy ${this.policyName} --namespace ${namespace}`,
      });
    }
  }
}
