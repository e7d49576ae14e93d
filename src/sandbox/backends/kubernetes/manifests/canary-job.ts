import { randomBytes } from "node:crypto";
import { MANAGED, TASK_LABEL } from "../labels.js";
import { jobManifest, type PodPlan } from "./job.js";
import type { PodNetwork } from "./network-policy.js";

const RESOURCES = { cpu: "10m", memory: "32Mi" };
/** The cluster removes it by itself if this process dies, in seconds. */
const LONGEST_LIFE = 180;

/** The fields of a template that decide where a pod runs, and how. Volumes may be attached to one pod only. */
const PLACE = [
  "affinity",
  "dnsPolicy",
  "hostUsers",
  "imagePullSecrets",
  "nodeName",
  "priorityClassName",
  "schedulerName",
];

/** What the pods of a canary have in common with those of the sandbox that it goes before: where they run, and how. */
export type CanaryPlan = Pick<PodPlan, "namespace" | "image" | "guest" | "options">;

/** The policies that a pod of a canary is under. */
export interface CanaryNetwork {
  readonly network?: PodNetwork | undefined;
  readonly task?: string | undefined;
}

/** One pod of a canary. With a network it is under that policy, as a sandbox is; without one it is under none of ours. */
export function canaryJob(
  plan: CanaryPlan,
  argv: readonly string[],
  { network, task }: CanaryNetwork,
): { name: string; body: object } {
  const name = `glovebox-canary-${randomBytes(6).toString("hex")}`;
  const { podTemplate, ...options } = plan.options;
  const spec = Object.fromEntries(Object.entries(podTemplate?.spec ?? {}).filter(([field]) => PLACE.includes(field)));
  const body = jobManifest({
    ...plan,
    name,
    argv: ["canary", ...argv],
    workDir: "/workspace",
    limits: {},
    network: network ?? "unrestricted",
    labels: { ...MANAGED, ...(task !== undefined && { [TASK_LABEL]: task }) },
    annotations: {},
    deadline: LONGEST_LIFE,
    options: { ...options, resources: RESOURCES, podTemplate: { metadata: podTemplate?.metadata ?? {}, spec } },
  });
  return { name, body };
}
