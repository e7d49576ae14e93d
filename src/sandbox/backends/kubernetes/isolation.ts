import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { SandboxError } from "../../../../contracts/errors.js";
import { isoTime } from "../../../util/iso-time.js";
import { flyCanary } from "./canary.js";
import type { KubeCall, KubeClient } from "./client/kube-client.js";
import { hasStatus, KubeError } from "./client/kube-error.js";
import { type KubeObject, NETWORK_POLICIES } from "./client/resources.js";
import type { CanaryPlan } from "./manifests/canary-job.js";
import { type PodNetwork, policyManifest, policyName, policySpec } from "./manifests/network-policy.js";

/** How long a proof is believed, in milliseconds. A cluster may lose what enforces its policies. */
const BELIEVED_FOR = 24 * 3_600_000;
/** On the policy, with a hash of where the canary ran. */
const PROVEN = "glovebox/proven-";

interface NetworkPolicy extends KubeObject {
  spec?: Record<string, unknown>;
}

/** After this time the policy is looked at again, in milliseconds: somebody may have removed it. */
const LOOKED_AT_EVERY = 60_000;

/** A proof, and when the policy was last seen. */
interface Proof {
  readonly made: Promise<void>;
  seenAt: number;
}

const proven = new WeakMap<KubeClient, Map<string, Proof>>();

/** What the proof of a policy needs to know. */
export interface IsolationCall extends KubeCall {
  /** Reports that a proof is being made, which takes seconds. */
  progress?(message: string): void;
}

/**
 * Makes sure that pods with this network are restricted from their first moment: the policy is there, and a canary has shown that the cluster enforces
 * it. Throws `unsupported` if it doesn't. Costs one request a minute; the proof is written on the policy, where other
 * processes find it.
 */
export async function ensureIsolation(
  client: KubeClient,
  network: PodNetwork,
  plan: CanaryPlan,
  call: IsolationCall = {},
): Promise<void> {
  const known = proven.get(client) ?? new Map<string, Proof>();
  proven.set(client, known);
  const where = placeOf(plan);
  const key = `${network} ${where}`;
  const found = known.get(key);
  const now = performance.now();
  if (found !== undefined) {
    try {
      await found.made;
    } catch (error) {
      // Whoever made it gave up; that is no answer for the others.
      const isOnlyTheirs = !(error instanceof SandboxError) || error.code === "aborted";
      if (!isOnlyTheirs || call.signal?.aborted === true) throw error;
      return await ensureIsolation(client, network, plan, call);
    }
    if (now - found.seenAt < LOOKED_AT_EVERY) return;
    await ensurePolicy(client, network, call);
    found.seenAt = now;
    return;
  }
  const made = prove(client, network, { plan, where }, call);
  known.set(key, { made, seenAt: now });
  made.catch(() => known.delete(key));
  await made;
}

/** Node pools may differ in what enforces their policies, and so may runtimes. */
function placeOf({ options }: CanaryPlan): string {
  const { nodeSelector, tolerations, runtimeClassName, podTemplate } = options;
  const { affinity, nodeName } = podTemplate?.spec ?? {};
  const text = JSON.stringify([nodeSelector, tolerations, runtimeClassName, affinity, nodeName]);
  return createHash("sha256").update(text).digest("hex").slice(0, 8);
}

/** When a proof was written on the policy, wherever its canary ran; undefined if there is none that is still believed. */
export async function whenProven(
  client: KubeClient,
  network: PodNetwork,
  call: KubeCall = {},
): Promise<string | undefined> {
  const place = { namespace: client.access.namespace, name: policyName(network) };
  const policy = await client.find<NetworkPolicy>(NETWORK_POLICIES, place, call);
  const times = Object.entries(policy?.metadata.annotations ?? {}).filter(([key]) => key.startsWith(PROVEN));
  return times.map(([, time]) => time).find(isBelieved);
}

function isBelieved(time: string | undefined): boolean {
  return Date.now() - Date.parse(time ?? "") < BELIEVED_FOR;
}

async function prove(
  client: KubeClient,
  network: PodNetwork,
  { plan, where }: { plan: CanaryPlan; where: string },
  call: IsolationCall,
): Promise<void> {
  const place = { namespace: client.access.namespace, name: policyName(network) };
  const policy = await ensurePolicy(client, network, call);
  const mark = `${PROVEN}${where}`;
  if (isBelieved(policy.metadata.annotations?.[mark])) return;
  call.progress?.("checking that the cluster enforces network policies");
  const open = await flyCanary(client, network, plan, call);
  if (open !== undefined) {
    throw new SandboxError("unsupported", `The Kubernetes cluster does not enforce network "${network}": ${open}`, {
      backend: "kubernetes",
      hint:
        network === "none"
          ? 'install a network plugin that enforces NetworkPolicy, such as Calico or Cilium; network: "full" needs none'
          : "install a network plugin that enforces NetworkPolicy, such as Calico or Cilium, or block metadata addresses on the nodes",
    });
  }
  const annotations = { [mark]: isoTime(Date.now()) };
  // Without this right, each process makes its own proof.
  await client.patch(NETWORK_POLICIES, place, { metadata: { annotations } }, call).catch((error: unknown) => {
    if (!hasStatus(error, 403)) throw error;
  });
}

async function ensurePolicy(client: KubeClient, network: PodNetwork, call: KubeCall): Promise<NetworkPolicy> {
  const place = { namespace: client.access.namespace, name: policyName(network) };
  const find = (): Promise<NetworkPolicy | undefined> => client.find<NetworkPolicy>(NETWORK_POLICIES, place, call);
  const made = async (): Promise<NetworkPolicy | undefined> =>
    await client
      .create<NetworkPolicy>(NETWORK_POLICIES, { namespace: place.namespace }, policyManifest(network), call)
      .catch((error: unknown) => {
        // Another process was faster.
        if (hasStatus(error, 409)) return undefined;
        throw error;
      });
  const policy = (await find()) ?? (await made()) ?? (await find());
  if (policy === undefined)
    throw new KubeError("unavailable", `The NetworkPolicy ${place.name} disappears again and again`);
  // What the server adds or leaves out as a default must not count as a change.
  if (isDeepStrictEqual(plainOf(policy.spec), plainOf(policySpec(network)))) return policy;
  throw new SandboxError(
    "tampered",
    `The NetworkPolicy ${place.name} does not say what Glovebox wrote: somebody has changed it`,
    {
      backend: "kubernetes",
      hint: `kubectl delete networkpolicy ${place.name} --namespace ${place.namespace}`,
    },
  );
}

function plainOf(spec: unknown): unknown {
  return JSON.parse(JSON.stringify(spec ?? null));
}
