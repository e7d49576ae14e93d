import { SandboxError } from "../../../../../contracts/errors.js";
import type { KubeCall, KubeClient } from "../client/kube-client.js";
import { KubeError } from "../client/kube-error.js";
import { type KubeObject, PODS, type Pod, SANDBOXES } from "../client/resources.js";
import { isRunning, podFailure } from "../failures/pod-failure.js";
import { replaced } from "../failures/pod-loss.js";
import { ensurePodIsolated } from "../isolation.js";
import { MANAGED, NETWORK_LABEL } from "../labels.js";
import { type PodPlan, podManifest } from "../manifests/job.js";
import type { PodNetwork } from "../manifests/network-policy.js";
import { guestArgv, type KubernetesPlan } from "../plan.js";
import { checkLivePodAnnotations } from "../pod-template.js";
import { boundSandbox, extendClaim, makeClaim, NoWarmPod } from "./claim.js";
import { podDifference } from "./same-pod.js";

/** On a Sandbox whose pod has another name. */
const POD_NAME = "agents.x-k8s.io/pod-name";

/** What the pods of a pool are for a plan: those of a Job, with a guest that waits for whoever comes first, and belongs to no sandbox yet. */
export function warmPod(plan: PodPlan, lease: number): { metadata: object; spec: object } {
  return podManifest({ ...plan, argv: guestArgv(lease, plan.workDir, "warm"), labels: MANAGED, annotations: {} });
}

/** Claims a pod of a pool that is what the plan says. Throws `NoWarmPod` if the pool has none, and `unsupported` if it is another one. */
export async function claimPod(
  client: KubeClient,
  plan: KubernetesPlan & { pool: string },
  signal: AbortSignal,
): Promise<Pod> {
  const { pool, pod: wanted, lease } = plan;
  await makeClaim(client, pool, wanted, { signal });
  const sandbox = await boundSandbox(client, pool, wanted.name, signal);
  const pod = await podOf(client, sandbox, { signal });
  const failure = podFailure(pod);
  if (failure !== undefined || !isRunning(pod))
    throw new NoWarmPod(failure?.message ?? `its pod ${sandbox} does not run`);
  await checkPod(client, pod, { pool, wanted, lease, signal });
  await extendClaim(client, wanted, { signal });
  return pod;
}

/** The pod of a Sandbox, which nearly always has its name. */
async function podOf(client: KubeClient, sandbox: string, call: KubeCall): Promise<Pod> {
  const { namespace } = client.access;
  const own = await client.find<Pod>(PODS, { namespace, name: sandbox }, call);
  if (own !== undefined && isOf(own, sandbox)) return own;
  const found = await client.find<KubeObject>(SANDBOXES, { namespace, name: sandbox }, call);
  const name = found?.metadata.annotations?.[POD_NAME] ?? sandbox;
  const pod = await client.find<Pod>(PODS, { namespace, name }, call);
  if (pod !== undefined && isOf(pod, sandbox)) return pod;
  throw new NoWarmPod(`the Sandbox ${sandbox} has no pod`);
}

function isOf({ metadata }: Pod, sandbox: string): boolean {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller === true);
  return owner?.kind === "Sandbox" && owner.name === sandbox;
}

interface Wanted {
  readonly pool: string;
  readonly wanted: PodPlan;
  readonly lease: number;
  readonly signal: AbortSignal;
}

/** Nothing of a pod that others have made is believed: it must be the one that we would make. */
async function checkPod(client: KubeClient, pod: Pod, { pool, wanted, lease, signal }: Wanted): Promise<void> {
  const found = differenceOf(pod, wanted, lease);
  if (found !== undefined) throw otherPod(pool, pod.metadata.name, found);
  checkLivePodAnnotations(pod.metadata.annotations ?? {}, `the pod ${pod.metadata.name} of the warm pool "${pool}"`);
  const late = await ensurePodIsolated(client, wanted.network as PodNetwork, pod, { signal });
  if (late !== undefined) throw otherPod(pool, pod.metadata.name, late);
}

/** In what a pod, or the template of one, is not what the plan says. */
export function differenceOf(
  { metadata, spec = {} }: { metadata?: Pick<Pod["metadata"], "labels">; spec?: Readonly<Record<string, unknown>> },
  plan: PodPlan,
  lease: number,
): string | undefined {
  const label = metadata?.labels?.[NETWORK_LABEL];
  if (label !== plan.network) return `its label ${NETWORK_LABEL} is "${label ?? ""}", not "${plan.network}"`;
  return podDifference(spec, warmPod(plan, lease).spec as Readonly<Record<string, unknown>>);
}

function otherPod(pool: string, pod: string, why: string): SandboxError {
  const message = `The pod ${pod} of the warm pool "${pool}" is not what the options ask for: ${why}`;
  return new SandboxError("unsupported", message, {
    backend: "kubernetes",
    hint: "glovebox doctor kubernetes prints the pool for your configuration; or leave kubernetes.warmPool out",
  });
}

/** The pod of a kept sandbox, as it is now. */
export async function findClaimed(
  client: KubeClient,
  { name, uid }: { name: string; uid: string | undefined },
  call: KubeCall,
): Promise<Pod> {
  const pod = await client.find<Pod>(PODS, { namespace: client.access.namespace, name }, call);
  if (pod === undefined || pod.metadata.uid !== uid) throw replaced(name, pod === undefined);
  const failure = podFailure(pod);
  if (failure !== undefined) throw failure;
  if (isRunning(pod)) return pod;
  throw new KubeError("backend_lost", `Kubernetes: the pod ${name} does not run`, { reason: pod.status?.phase });
}
