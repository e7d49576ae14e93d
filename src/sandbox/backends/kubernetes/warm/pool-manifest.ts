import { SANDBOX_TEMPLATES, WARM_POOLS } from "../client/resources.js";
import type { PodPlan } from "../manifests/job.js";
import { warmPod } from "./claimed-pod.js";

/** How many pods wait, unless somebody changes it. */
const REPLICAS = 3;

/** What makes a pool of pods for a plan, as YAML. Both objects have its name. */
export async function poolManifest(name: string, plan: PodPlan, lease: number): Promise<string> {
  const { stringify } = await import("yaml");
  const metadata = { name, namespace: plan.namespace };
  const template = {
    apiVersion: SANDBOX_TEMPLATES.api,
    kind: "SandboxTemplate",
    metadata,
    // The policy that agent-sandbox makes by itself opens the internet, and policies add up.
    spec: { podTemplate: warmPod(plan, lease), networkPolicyManagement: "Unmanaged" },
  };
  const pool = {
    apiVersion: WARM_POOLS.api,
    kind: "SandboxWarmPool",
    metadata,
    // With the other strategy, pods of an older template would be given out, and refused.
    spec: { replicas: REPLICAS, sandboxTemplateRef: { name }, updateStrategy: { type: "Recreate" } },
  };
  return [template, pool].map((document) => stringify(document, { aliasDuplicateObjects: false })).join("---\n");
}
