import { setTimeout as sleep } from "node:timers/promises";
import { SandboxError } from "../../../../../contracts/errors.js";
import { isoTime } from "../../../../util/iso-time.js";
import type { KubeCall, KubeClient } from "../client/kube-client.js";
import { hasStatus, isUnknownKind, KubeError } from "../client/kube-error.js";
import { type KubeObject, type ObjectCondition, SANDBOX_CLAIMS, WARM_POOLS } from "../client/resources.js";
import { watch } from "../client/watch.js";
import type { PodPlan } from "../manifests/job.js";

/** How long a claim that nobody has used yet lives, in milliseconds. Its guest waits without a lease, so the claim has one. */
const UNUSED = 600_000;
/** How long a claim stays after its pod has ended, in seconds: as long as a Job. */
const AFTER_END = 60;
/** After this time the pool is looked at, in milliseconds: it may not be there, or have nothing. */
const LOOKED_AT_AFTER = 1_000;
/** A pod that is ready is bound in much less, in milliseconds. */
const PATIENCE = 5_000;

/** The parts of a SandboxClaim that we read. */
export interface Claim extends KubeObject {
  status?: { conditions?: ObjectCondition[]; sandbox?: { name?: string } };
}

/** The parts of a SandboxWarmPool that we read. */
export interface WarmPool extends KubeObject {
  spec?: { replicas?: number; sandboxTemplateRef?: { name?: string } };
  status?: { replicas?: number; readyReplicas?: number };
}

/** Why a pool has no pod for us now. */
export class NoWarmPod extends Error {}

/** Asks for a pod of a pool. The claim has the name that a Job would have. */
export async function makeClaim(client: KubeClient, pool: string, plan: PodPlan, call: KubeCall): Promise<void> {
  const { name, namespace, labels, annotations } = plan;
  const body = {
    // A server guesses them for its own kinds only.
    apiVersion: SANDBOX_CLAIMS.api,
    kind: "SandboxClaim",
    metadata: { name, labels, annotations },
    spec: {
      warmPoolRef: { name: pool },
      lifecycle: {
        shutdownPolicy: "Delete",
        shutdownTime: secondsOf(UNUSED),
        ttlSecondsAfterFinished: AFTER_END,
      },
    },
  };
  try {
    await client.create(SANDBOX_CLAIMS, { namespace }, body, call);
  } catch (error) {
    if (isUnknownKind(error)) throw noPools(pool);
    // Its name is ours alone: a create whose answer was lost has made it.
    if (!hasStatus(error, 409)) throw error;
  }
}

/** Gives a claim that is used the life of its sandbox, in seconds; without a limit it has none. */
export async function extendClaim(client: KubeClient, plan: PodPlan, call: KubeCall): Promise<void> {
  const { name, namespace, deadline } = plan;
  const shutdownTime = deadline === undefined ? null : secondsOf(deadline * 1_000);
  await client.patch(SANDBOX_CLAIMS, { namespace, name }, { spec: { lifecycle: { shutdownTime } } }, call);
}

/** Removes a claim, and with it the pod that it has. */
export async function removeClaim(client: KubeClient, name: string, call: KubeCall = {}): Promise<void> {
  await client
    .delete(SANDBOX_CLAIMS, { namespace: client.access.namespace, name }, {}, call)
    .catch((error: unknown) => {
      if (!isUnknownKind(error)) throw error;
    });
}

/** Waits until a claim has a pod that was ready before, and returns the name of its Sandbox. Throws `NoWarmPod` if there is none. */
export async function boundSandbox(
  client: KubeClient,
  pool: string,
  name: string,
  signal: AbortSignal,
): Promise<string> {
  const ending = new AbortController();
  const either = AbortSignal.any([signal, ending.signal]);
  let hasSandbox = false;
  const onSandbox = (): void => {
    hasSandbox = true;
  };
  try {
    return await Promise.race([
      follow(client, name, either, onSandbox),
      giveUp(client, pool, either, () => hasSandbox),
    ]);
  } finally {
    ending.abort();
  }
}

async function follow(client: KubeClient, name: string, signal: AbortSignal, onSandbox: () => void): Promise<string> {
  const { namespace } = client.access;
  const fields = `metadata.name=${name}`;
  for await (const event of watch<Claim>(client, SANDBOX_CLAIMS, { namespace }, { fields, signal })) {
    if (event.type === "gone") throw new NoWarmPod("the claim was deleted");
    for (const claim of event.type === "all" ? event.objects : [event.object]) {
      const { conditions = [], sandbox } = claim.status ?? {};
      const ready = conditions.find(({ type }) => type === "Ready");
      // A claim that finds no pod gets a new one, by its own name: a Job is as fast.
      if (sandbox?.name === name) throw new NoWarmPod("it has no free pod");
      if (sandbox?.name) onSandbox();
      if (sandbox?.name && ready?.status === "True") return sandbox.name;
      if (LOST.has(ready?.reason ?? "")) throw new NoWarmPod(ready?.message ?? "the claim was refused");
    }
  }
  throw new KubeError("internal", "a watch has ended");
}

/** Reasons for which a claim will never be ready. */
const LOST: ReadonlySet<string> = new Set(["TemplateNotFound", "InvalidMetadata", "ClaimExpired", "SandboxExpired"]);

/** Rejects when the pool has nothing; never resolves. */
async function giveUp(
  client: KubeClient,
  pool: string,
  signal: AbortSignal,
  hasSandbox: () => boolean,
): Promise<never> {
  const started = performance.now();
  for (;;) {
    await sleep(LOOKED_AT_AFTER, undefined, { signal });
    const { status = {} } = await findPool(client, pool, { signal });
    // The last one may be ours.
    if ((status.readyReplicas ?? 0) === 0 && !hasSandbox()) throw new NoWarmPod("it has no free pod");
    if (performance.now() - started > PATIENCE) throw new NoWarmPod(`it gave no pod within ${PATIENCE} ms`);
  }
}

/** The pool, which must be there. */
export async function findPool(client: KubeClient, name: string, call: KubeCall = {}): Promise<WarmPool> {
  try {
    return await client.get<WarmPool>(WARM_POOLS, { namespace: client.access.namespace, name }, call);
  } catch (error) {
    if (isUnknownKind(error)) throw noPools(name);
    if (!hasStatus(error, 404)) throw error;
    throw new KubeError("not_found", `Option kubernetes.warmPool: there is no SandboxWarmPool "${name}"`, {
      cause: error,
      status: 404,
      hint: "glovebox doctor kubernetes prints one for your configuration; kubectl apply -f makes it",
    });
  }
}

function noPools(pool: string): SandboxError {
  const api = SANDBOX_CLAIMS.api;
  return new SandboxError(
    "unsupported",
    `Option kubernetes.warmPool "${pool}": the cluster has no SandboxClaim of ${api}`,
    {
      backend: "kubernetes",
      hint: "install agent-sandbox and its extensions, or leave the option out",
    },
  );
}

/** The controllers know no parts of seconds. */
function secondsOf(fromNow: number): string {
  return isoTime(Date.now() + fromNow).replace(/\.\d+Z$/, "Z");
}
