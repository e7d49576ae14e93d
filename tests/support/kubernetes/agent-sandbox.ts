import { setTimeout as delay } from "node:timers/promises";

const CLAIM_UID = "agents.x-k8s.io/claim-uid";
const POOL = "agents.x-k8s.io/warm-pool-sandbox";
const TEMPLATE_REF = "agents.x-k8s.io/sandbox-template-ref-hash";
const POD_NAME = "agents.x-k8s.io/pod-name";

/** The kinds that the controller reads and writes. */
export type PoolKind = "SandboxTemplate" | "SandboxWarmPool" | "Sandbox" | "SandboxClaim" | "Pod" | "NetworkPolicy";

// biome-ignore lint/suspicious/noExplicitAny: objects as the server has them.
export type Found = any;

/** The objects of one namespace. */
export interface PoolObjects {
  list(kind: PoolKind): Promise<Found[]>;
  create(kind: PoolKind, body: object): Promise<void>;
  /** Merges fields into an object; those of its status, too. `null` removes a field. */
  change(kind: PoolKind, name: string, fields: Found): Promise<void>;
  remove(kind: PoolKind, name: string): Promise<void>;
}

/**
 * Plays the controllers of agent-sandbox in a namespace: keeps pools full, makes the pods of Sandboxes, and gives claims a Sandbox of their pool, or a new
 * one if the pool has none that is ready. What it does to the objects is what the real ones do.
 */
export class AgentSandbox implements AsyncDisposable {
  readonly #objects: PoolObjects;
  readonly #done: Promise<void>;
  #isOver = false;
  /** While it is true nothing happens, as when the controller is down. */
  isPaused = false;
  /** The names of pods that are called otherwise than their Sandbox, as those of older versions were. */
  podSuffix = "";

  constructor(objects: PoolObjects, interval = 30) {
    this.#objects = objects;
    this.#done = this.#run(interval);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#done;
  }

  async #run(interval: number): Promise<void> {
    while (!this.#isOver) {
      // What somebody else changes or removes meanwhile is as it should be the next time.
      if (!this.isPaused) await this.#pass().catch(() => undefined);
      await delay(interval);
    }
  }

  async #pass(): Promise<void> {
    for (const template of await this.#objects.list("SandboxTemplate")) await this.#policy(template);
    for (const pool of await this.#objects.list("SandboxWarmPool")) await this.#fill(pool);
    for (const sandbox of await this.#objects.list("Sandbox")) await this.#sandbox(sandbox);
    for (const claim of await this.#objects.list("SandboxClaim")) await this.#claim(claim);
  }

  /** Unless it is told not to, it makes a policy that lets the pods out. */
  async #policy({ metadata, spec }: Found): Promise<void> {
    const name = `${metadata.name}-network-policy`;
    if ((spec.networkPolicyManagement ?? "Managed") !== "Managed" || (await this.#find("NetworkPolicy", name))) return;
    await this.#objects.create("NetworkPolicy", {
      metadata: { name },
      spec: {
        podSelector: { matchLabels: { [TEMPLATE_REF]: metadata.name } },
        policyTypes: ["Ingress", "Egress"],
        egress: [{ to: [{ ipBlock: { cidr: "0.0.0.0/0", except: ["10.0.0.0/8", "169.254.0.0/16"] } }] }],
      },
    });
  }

  async #fill(pool: Found): Promise<void> {
    const { name, uid } = pool.metadata;
    const own = await this.#ofPool(uid);
    const template = await this.#find("SandboxTemplate", pool.spec.sandboxTemplateRef.name);
    for (let count = own.length; template !== undefined && count < (pool.spec.replicas ?? 1); count++) {
      await this.#objects.create("Sandbox", this.#sandboxOf(template, { generateName: `${name}-` }, pool));
    }
    const status = { replicas: own.length, readyReplicas: own.filter(isReady).length };
    if (JSON.stringify(pool.status ?? {}) !== JSON.stringify(status))
      await this.#objects.change("SandboxWarmPool", name, { status });
  }

  #sandboxOf(template: Found, meta: object, owner: Found): object {
    const isPool = owner.kind === "SandboxWarmPool";
    const { podTemplate } = template.spec;
    const controller = {
      apiVersion: owner.apiVersion,
      kind: owner.kind,
      name: owner.metadata.name,
      uid: owner.metadata.uid,
    };
    const labels = {
      [TEMPLATE_REF]: template.metadata.name,
      "agents.x-k8s.io/launch-type": isPool ? "warm" : "cold",
      ...(isPool && { [POOL]: owner.metadata.name }),
    };
    const ownerReferences = [{ ...controller, controller: true, blockOwnerDeletion: true }];
    return { metadata: { ...meta, labels, ownerReferences }, spec: { podTemplate, operatingMode: "Running" } };
  }

  async #sandbox(sandbox: Found): Promise<void> {
    const { name, uid, labels, annotations = {}, deletionTimestamp } = sandbox.metadata;
    if (deletionTimestamp !== undefined || sandbox.status?.conditions?.some(isFinished)) return;
    const pod = await this.#find("Pod", annotations[POD_NAME] ?? name + this.podSuffix);
    if (pod === undefined) {
      const { metadata = {}, spec } = sandbox.spec.podTemplate;
      const own = { "agents.x-k8s.io/sandbox-name-hash": name, [TEMPLATE_REF]: labels[TEMPLATE_REF] };
      await this.#objects.create("Pod", {
        metadata: {
          name: name + this.podSuffix,
          labels: { ...metadata.labels, ...own },
          annotations: {
            ...metadata.annotations,
            "agents.x-k8s.io/propagated-labels": Object.keys(metadata.labels ?? {}).join(","),
          },
          ownerReferences: [
            { apiVersion: sandbox.apiVersion, kind: "Sandbox", name, uid, controller: true, blockOwnerDeletion: true },
          ],
        },
        spec,
      });
      await this.#objects.change("Sandbox", name, { metadata: { annotations: { [POD_NAME]: name + this.podSuffix } } });
      return;
    }
    const { phase, conditions = [], podIPs = [] } = pod.status ?? {};
    const isUp =
      phase === "Running" && conditions.some(({ type, status }: Found) => type === "Ready" && status === "True");
    const isOver = phase === "Succeeded" || phase === "Failed";
    const wanted = [
      isUp
        ? condition("Ready", "True", "DependenciesReady")
        : condition("Ready", "False", isOver ? `Pod${phase}` : "DependenciesNotReady"),
      ...(isOver ? [condition("Finished", "True", `Pod${phase}`)] : []),
    ];
    if (isSame(sandbox.status?.conditions, wanted)) return;
    await this.#objects.change("Sandbox", name, {
      status: { conditions: wanted, podIPs: podIPs.map(({ ip }: Found) => ip) },
    });
  }

  async #claim(claim: Found): Promise<void> {
    const { name, uid } = claim.metadata;
    const { warmPoolRef, lifecycle = {} } = claim.spec;
    const { shutdownPolicy = "Retain", shutdownTime, ttlSecondsAfterFinished: ttl } = lifecycle;
    const end = claim.status?.conditions?.find(isFinished);
    const isExpired =
      Date.parse(shutdownTime ?? "") <= Date.now() ||
      (ttl !== undefined && end !== undefined && Date.parse(end.lastTransitionTime) + ttl * 1_000 <= Date.now());
    if (isExpired && shutdownPolicy !== "Retain") return await this.#objects.remove("SandboxClaim", name);
    const pool = await this.#find("SandboxWarmPool", warmPoolRef.name);
    const template = pool && (await this.#find("SandboxTemplate", pool.spec.sandboxTemplateRef.name));
    if (template === undefined)
      return await this.#report(claim, [condition("Ready", "False", pool ? "TemplateNotFound" : "WarmPoolNotFound")]);
    const bound = claim.status?.sandbox?.name as string | undefined;
    const sandbox = bound === undefined ? await this.#adopt(claim, pool) : await this.#find("Sandbox", bound);
    if (sandbox === undefined && (await this.#find("Sandbox", name)) === undefined && bound === undefined) {
      await this.#objects.create("Sandbox", this.#sandboxOf(template, { name }, claim));
    }
    const found = sandbox ?? (await this.#find("Sandbox", name));
    if (found?.metadata.ownerReferences[0].uid !== uid) return;
    const conditions = (found.status?.conditions ?? []).map(({ type, status, reason }: Found) =>
      condition(type, status, reason),
    );
    await this.#report(claim, conditions, { name: found.metadata.name, podIPs: found.status?.podIPs ?? [] });
  }

  /** Takes the oldest that is ready out of the pool. */
  async #adopt(claim: Found, pool: Found): Promise<Found> {
    const { env, volumeClaimTemplates } = claim.spec;
    if (env?.length > 0 || volumeClaimTemplates?.length > 0) return undefined;
    const [free] = (await this.#ofPool(pool.metadata.uid)).filter(isReady);
    if (free === undefined) return undefined;
    const { apiVersion, kind, metadata } = claim;
    const owner = {
      apiVersion,
      kind,
      name: metadata.name,
      uid: metadata.uid,
      controller: true,
      blockOwnerDeletion: true,
    };
    const labels = { [POOL]: null, [CLAIM_UID]: metadata.uid };
    await this.#objects.change("Sandbox", free.metadata.name, { metadata: { ownerReferences: [owner], labels } });
    return await this.#find("Sandbox", free.metadata.name);
  }

  async #report(claim: Found, conditions: Found[], sandbox?: object): Promise<void> {
    const before = claim.status ?? {};
    if (isSame(before.conditions, conditions) && JSON.stringify(before.sandbox) === JSON.stringify(sandbox)) return;
    await this.#objects.change("SandboxClaim", claim.metadata.name, {
      status: { conditions, ...(sandbox && { sandbox }) },
    });
  }

  async #ofPool(uid: string): Promise<Found[]> {
    const all = await this.#objects.list("Sandbox");
    return all.filter(
      ({ metadata }) => metadata.ownerReferences?.[0]?.uid === uid && metadata.deletionTimestamp === undefined,
    );
  }

  async #find(kind: PoolKind, name: string): Promise<Found> {
    return (await this.#objects.list(kind)).find(({ metadata }) => metadata.name === name);
  }
}

/** Whether the pod of a Sandbox runs and is ready. */
export function isReady({ status }: Found): boolean {
  return (status?.conditions ?? []).some(({ type, status: is }: Found) => type === "Ready" && is === "True");
}

function isFinished({ type, status }: Found): boolean {
  return type === "Finished" && status === "True";
}

function condition(type: string, status: string, reason: string): Found {
  const lastTransitionTime = `${new Date().toISOString().slice(0, 19)}Z`;
  return { type, status, reason, message: reason, lastTransitionTime };
}

function isSame(one: Found[] | undefined, other: Found[]): boolean {
  const plain = (all: Found[]): string => JSON.stringify(all.map(({ type, status, reason }) => [type, status, reason]));
  return one !== undefined && plain(one) === plain(other);
}
