import { toSandboxError } from "../../../../../contracts/errors.js";
import type { Finding } from "../../../../../contracts/finding.js";
import type { SandboxOptions } from "../../../types.js";
import type { KubeCall, KubeClient } from "../client/kube-client.js";
import { hasStatus } from "../client/kube-error.js";
import { type KubeObject, SANDBOX_TEMPLATES } from "../client/resources.js";
import { guestName } from "../manifests/guest-config-map.js";
import { architectureOf, type PodPlan } from "../manifests/job.js";
import { imageOf, workDirOf } from "../options.js";
import { DEFAULT_LEASE } from "../plan.js";
import { findPool } from "./claim.js";
import { differenceOf } from "./claimed-pod.js";
import { poolManifest } from "./pool-manifest.js";

interface Template extends KubeObject {
  spec?: {
    podTemplate?: { metadata?: { labels?: Record<string, string> }; spec?: Record<string, unknown> };
    networkPolicyManagement?: string;
  };
}

const FIX = "kubectl apply -f <file>, with the manifest";

/** Compares a pool with the options; with the manifest of one that fits, where it doesn't. */
export async function probePool(
  client: KubeClient,
  pool: string,
  options: SandboxOptions,
  call: KubeCall,
): Promise<Finding> {
  const name = "warm pool";
  const {
    kubeconfig: _,
    context: __,
    namespace: ___,
    warmPool: ____,
    lease = DEFAULT_LEASE,
    ...own
  } = options.kubernetes ?? {};
  const plan: PodPlan = {
    namespace: client.access.namespace,
    name: pool,
    image: imageOf(options),
    guest: guestName(architectureOf(own)),
    argv: [],
    workDir: workDirOf(options),
    limits: options.limits ?? {},
    network: options.network === "full" ? "full" : "none",
    labels: {},
    annotations: {},
    options: own,
  };
  const manifest = await poolManifest(pool, plan, lease);
  const found = await findPool(client, pool, call).catch((error: unknown) => {
    if (!hasStatus(error, 404)) throw error;
    return toSandboxError(error);
  });
  if (found instanceof Error) return { name, status: "limited", detail: found.message, fix: FIX, manifest };
  const { replicas = 0, readyReplicas = 0 } = found.status ?? {};
  const why = await whyOther(client, found.spec?.sandboxTemplateRef?.name ?? "", plan, lease, call);
  if (why !== undefined) {
    const detail = `${pool} has other pods than your configuration asks for: ${why}`;
    return { name, status: "limited", detail, fix: FIX, manifest };
  }
  const detail = `${pool}: ${readyReplicas} of ${replicas} pods are ready`;
  if (readyReplicas > 0) return { name, status: "ok", detail };
  return { name, status: "limited", detail, fix: `see why: kubectl describe sandboxwarmpool ${pool}` };
}

async function whyOther(
  client: KubeClient,
  name: string,
  plan: PodPlan,
  lease: number,
  call: KubeCall,
): Promise<string | undefined> {
  const template = await client.find<Template>(SANDBOX_TEMPLATES, { namespace: plan.namespace, name }, call);
  if (template === undefined) return `there is no SandboxTemplate "${name}"`;
  const { podTemplate = {}, networkPolicyManagement = "Managed" } = template.spec ?? {};
  if (networkPolicyManagement !== "Unmanaged")
    return `spec.networkPolicyManagement is "${networkPolicyManagement}", and policies of others add up with ours`;
  return differenceOf(podTemplate, plan, lease);
}
