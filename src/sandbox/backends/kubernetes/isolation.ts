import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { SandboxError } from "../../../../contracts/errors.js";
import { isoTime } from "../../../util/iso-time.js";
import { flyCanary, type Shows } from "./canary.js";
import type { KubeCall, KubeClient } from "./client/kube-client.js";
import { hasStatus, KubeError } from "./client/kube-error.js";
import { NETWORK_POLICIES, type Pod } from "./client/resources.js";
import { NETWORK_LABEL, TASK_LABEL } from "./labels.js";
import type { CanaryPlan } from "./manifests/canary-job.js";
import { type PodNetwork, policyManifest, policyName, policySpec, taskPolicyName } from "./manifests/network-policy.js";
import { labelsOf, lastingLabels, openedBy, type PolicyObject } from "./other-policies.js";

/** How long a proof is believed, in milliseconds. A cluster may lose what enforces its policies. */
const BELIEVED_FOR = 24 * 3_600_000;
/** On the policy, with a hash of where the canary ran. */
const PROVEN = "glovebox/proven-";

/** How far ahead the clock of whoever wrote a proof may be, in milliseconds. */
const AHEAD = 300_000;

/** After this time the policies are looked at again, in milliseconds: somebody may have removed ours, or added others. */
const LOOKED_AT_EVERY = 60_000;

/** A proof, and when the policies were last seen. */
interface Proof {
  readonly made: Promise<Shown>;
  seenAt: number;
}

/** What was shown when: a policy that was made again is another one. */
interface Shown {
  readonly uid: string | undefined;
  /** In milliseconds since 1970. */
  readonly at: number;
}

const proven = new WeakMap<KubeClient, Map<string, Proof>>();

/** The pods that have to be restricted. */
export interface IsolationPlan extends CanaryPlan {
  /** The network of the task that they are part of, as in TASK_LABEL. */
  readonly taskNetwork?: string;
}

/** What the proof of a policy needs to know. */
export interface IsolationCall extends KubeCall {
  /** Reports that a proof is being made, which takes seconds. */
  progress?(message: string): void;
}

/**
 * Makes sure that pods with this network are restricted from their first moment: the policy is there, and a canary has shown that the cluster enforces
 * it. Throws `unsupported` if it doesn't, or if another policy opens what ours denies. Costs one request a minute; the proof is written on the policy, where other
 * processes find it.
 */
export async function ensureIsolation(
  client: KubeClient,
  network: PodNetwork,
  plan: IsolationPlan,
  call: IsolationCall = {},
): Promise<void> {
  const known = proven.get(client) ?? new Map<string, Proof>();
  proven.set(client, known);
  const where = placeOf(plan);
  // Other policies select pods by the user's labels, too; the proof itself is the same for all of them.
  const key = JSON.stringify([
    network,
    where,
    plan.options.podTemplate?.metadata?.labels,
    plan.taskNetwork !== undefined,
  ]);
  const found = known.get(key);
  const now = performance.now();
  if (found === undefined) {
    const made = prove(client, network, { plan, where }, call);
    known.set(key, { made, seenAt: now });
    made.catch(() => known.delete(key));
    await made;
    return;
  }
  let shown: Shown;
  try {
    shown = await found.made;
  } catch (error) {
    // Whoever made it gave up; that is no answer for the others.
    const isOnlyTheirs = !(error instanceof SandboxError) || error.code === "aborted";
    if (!isOnlyTheirs || call.signal?.aborted === true) throw error;
    return await ensureIsolation(client, network, plan, call);
  }
  let isSame = isBelieved(shown.at);
  if (isSame && now - found.seenAt >= LOOKED_AT_EVERY) {
    isSame = (await ensurePolicy(client, network, podsOf(plan, network), call)).metadata.uid === shown.uid;
    if (isSame) found.seenAt = now;
  }
  if (isSame) return;
  if (known.get(key) === found) known.delete(key);
  await ensureIsolation(client, network, plan, call);
}

/** When our policy was made, by the labels of pods that no other one opens. */
const seen = new WeakMap<KubeClient, Map<string, { readonly made: Promise<string>; readonly at: number }>>();

/**
 * Makes sure that a pod that was there before is restricted like ours: no other policy opens it, and it is no older than our own, so that it was never
 * without. Returns what is wrong with its age. Costs one request a minute. The proof that policies are enforced is that of `ensureIsolation`.
 */
export async function ensurePodIsolated(
  client: KubeClient,
  network: PodNetwork,
  { metadata }: Pod,
  call: KubeCall = {},
): Promise<string | undefined> {
  const known = seen.get(client) ?? new Map<string, { made: Promise<string>; at: number }>();
  seen.set(client, known);
  const labels = lastingLabels(metadata.labels ?? {});
  const key = JSON.stringify([network, Object.entries(labels).sort()]);
  let found = known.get(key);
  if (found === undefined || performance.now() - found.at >= LOOKED_AT_EVERY) {
    const made = ensurePolicy(client, network, { labels }, call).then(
      (policy) => policy.metadata.creationTimestamp ?? "",
    );
    found = { made, at: performance.now() };
    known.set(key, found);
    made.catch(() => known.delete(key));
  }
  const since = await found.made;
  const { creationTimestamp = "" } = metadata;
  if (Date.parse(since) <= Date.parse(creationTimestamp)) return undefined;
  return `it is from ${creationTimestamp}, older than the NetworkPolicy ${policyName(network)}`;
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
  const policy = await client.find<PolicyObject>(NETWORK_POLICIES, place, call);
  const times = Object.entries(policy?.metadata.annotations ?? {}).filter(([key]) => key.startsWith(PROVEN));
  return times.map(([, time]) => time).find((time) => isBelieved(Date.parse(time)));
}

/** A time that is yet to come would be believed for longer. */
function isBelieved(at: number): boolean {
  const age = Date.now() - at;
  return age > -AHEAD && age < BELIEVED_FOR;
}

async function prove(
  client: KubeClient,
  network: PodNetwork,
  { plan, where }: { plan: IsolationPlan; where: string },
  call: IsolationCall,
): Promise<Shown> {
  const place = { namespace: client.access.namespace, name: policyName(network) };
  const policy = await ensurePolicy(client, network, podsOf(plan, network), call);
  const { uid, annotations: written } = policy.metadata;
  const proofs: readonly (readonly [Shows, string])[] = [
    [network, `${PROVEN}${where}`],
    ...(plan.taskNetwork === undefined ? [] : [["task", `${PROVEN}task-${where}`] as const]),
  ];
  const before = proofs.map(([, mark]) => Date.parse(written?.[mark] ?? ""));
  if (before.every(isBelieved)) return { uid, at: Math.min(...before) };
  call.progress?.("checking that the cluster enforces network policies");
  for (const [index, [proof]] of proofs.entries()) {
    if (isBelieved(before[index] ?? Number.NaN)) continue;
    const open = await flyCanary(client, proof, plan, call);
    if (open !== undefined) throw notEnforced(proof, open);
  }
  const at = Date.now();
  const annotations = Object.fromEntries(proofs.map(([, mark]) => [mark, isoTime(at)]));
  // Without this right, each process makes its own proof.
  await client.patch(NETWORK_POLICIES, place, { metadata: { annotations } }, call).catch((error: unknown) => {
    if (!hasStatus(error, 403)) throw error;
  });
  return { uid, at };
}

const PLUGIN = "install a network plugin that enforces NetworkPolicy, such as Calico or Cilium";
const WAYS_OUT: Readonly<Record<Shows, string>> = {
  none: `${PLUGIN}; network: "full" needs none`,
  full: `${PLUGIN}, or block metadata addresses on the nodes`,
  task: `${PLUGIN}; a task without services needs no network of its own`,
};

function notEnforced(proof: Shows, open: string): SandboxError {
  const what = proof === "task" ? "the networks of tasks" : `network "${proof}"`;
  const message = `The Kubernetes cluster does not enforce ${what}: ${open}`;
  return new SandboxError("unsupported", message, { backend: "kubernetes", hint: WAYS_OUT[proof] });
}

async function ensurePolicy(
  client: KubeClient,
  network: PodNetwork,
  { labels, taskNetwork }: RestrictedPods,
  call: KubeCall,
): Promise<PolicyObject> {
  const place = { namespace: client.access.namespace, name: policyName(network) };
  const find = async (): Promise<PolicyObject | undefined> => {
    const { items } = await client.list<PolicyObject>(NETWORK_POLICIES, { namespace: place.namespace }, {}, call);
    const ours = [place.name, ...(taskNetwork === undefined ? [] : [taskPolicyName(taskNetwork)])];
    for (const policy of items) if (!ours.includes(policy.metadata.name)) refuseOpening(policy, network, labels, place);
    return items.find(({ metadata }) => metadata.name === place.name);
  };
  const made = async (): Promise<PolicyObject | undefined> =>
    await client
      .create<PolicyObject>(NETWORK_POLICIES, { namespace: place.namespace }, policyManifest(network), call)
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

/** The canary can't find it: it does not know what else there is to reach. */
function refuseOpening(
  policy: PolicyObject,
  network: PodNetwork,
  labels: Readonly<Record<string, string>>,
  { namespace }: { namespace: string },
): void {
  const open = openedBy(policy, network, labels);
  if (open === undefined) return;
  const { name } = policy.metadata;
  const message = `The NetworkPolicy ${name} of the namespace ${namespace} opens ${open} for pods with network "${network}"`;
  throw new SandboxError("unsupported", message, {
    backend: "kubernetes",
    hint: `what one policy allows, no other can deny: use a namespace of its own, or add to the podSelector of ${name}: matchExpressions: [{ key: ${NETWORK_LABEL}, operator: DoesNotExist }]`,
  });
}

/** The pods that a policy must restrict. */
interface RestrictedPods extends Pick<IsolationPlan, "taskNetwork"> {
  readonly labels: Readonly<Record<string, string>>;
}

function podsOf({ options, taskNetwork }: IsolationPlan, network: PodNetwork): RestrictedPods {
  const labels = labelsOf(options.podTemplate?.metadata?.labels, network);
  if (taskNetwork === undefined) return { labels };
  return { labels: { ...labels, [TASK_LABEL]: taskNetwork }, taskNetwork };
}

function plainOf(spec: unknown): unknown {
  return JSON.parse(JSON.stringify(spec ?? null));
}
