import { posix } from "node:path";
import { SandboxError } from "../../../../contracts/errors.js";
import * as is from "../../../util/schema.js";
import { check, invalidArgument, type Parser, parser, type Schema } from "../../../util/schema.js";
import type { SandboxOptions } from "../../types.js";
import { DEFAULT_IMAGE } from "../default-image.js";
import type { KubernetesOptions, KubernetesPodTemplate, KubernetesToleration } from "./kubernetes-options.js";
import { checkPodTemplate } from "./pod-template.js";

const WORK_DIR = "/workspace";
const DEFAULT_USER = "1000:1000";
/** Shorter, and a pause of the network would end the sandbox. */
const SHORTEST_LEASE = 10_000;
const LONGEST_LEASE = 24 * 3_600_000;

const LABEL_NAME = "[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?";
const labelKey = is.matching(new RegExp(`^([a-z0-9.-]{1,253}/)?${LABEL_NAME}$`), "the key of a label");
const labelValue = is.matching(new RegExp(`^(${LABEL_NAME})?$`), "the value of a label");
const objectName = is.matching(/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/, "the name of an object: a-z, 0-9, - and .");
const namespaceName = is.matching(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, "the name of a namespace: a-z, 0-9 and -");
const quantity = is.matching(/^[0-9]+(\.[0-9]+)?(m|[kMGTPE]|[KMGTPE]i)?$/, 'a quantity such as "500m", "1.5" or "2Gi"');

/** What a registry takes for the name of an image. */
export const imageName: Schema<string> = is.imageName(
  "the name of an image: lower case, with an optional tag or digest",
);

const workDir = is.and(is.path, (value, name) => {
  if (!posix.isAbsolute(value)) throw invalidArgument(name, "an absolute path", value);
  if (/^\/($|(proc|sys|dev|\.glovebox)(\/|$))/.test(posix.normalize(value))) {
    throw invalidArgument(name, "a path that is not the kernel's or the guest's", value);
  }
});

const toleration: Schema<KubernetesToleration> = is.object({
  key: labelKey,
  operator: is.oneOf("Equal", "Exists"),
  value: labelValue,
  effect: is.oneOf("NoSchedule", "PreferNoSchedule", "NoExecute"),
  tolerationSeconds: is.whole(0, 2 ** 31 - 1),
});

/** Words by which a user may look for something that has another place here, or that is never possible. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  privileged: "another backend: no pod of ours is privileged",
  capabilities: "another backend: pods of ours have no capabilities",
  hostNetwork: "the option network",
  network: "the option network",
  mounts: "kubernetes.podTemplate, with a volume",
  volumes: "kubernetes.podTemplate, in its spec",
  env: "the option env",
  limits: "the option limits, or kubernetes.resources",
  serviceAccountName: "kubernetes.serviceAccount",
  runtimeClass: "kubernetes.runtimeClassName",
  imagePullSecrets: "kubernetes.podTemplate, in its spec",
  affinity: "kubernetes.podTemplate, in its spec",
  warmPoolRef: "kubernetes.warmPool",
};

const schema: Schema<KubernetesOptions> = is.object(
  {
    context: is.text,
    kubeconfig: is.path,
    namespace: namespaceName,
    image: imageName,
    runtimeClassName: objectName,
    serviceAccount: objectName,
    nodeSelector: is.record(labelValue, labelKey),
    tolerations: is.list(toleration),
    resources: is.record(quantity, labelKey),
    warmPool: objectName,
    podTemplate: is.custom<KubernetesPodTemplate>(checkPodTemplate, { type: "object" }),
    workDir,
    user: is.matching(/^[0-9]{1,10}(:[0-9]{1,10})?$/, "uid or uid:gid, as numbers"),
    lease: is.whole(SHORTEST_LEASE, LONGEST_LEASE),
  },
  {},
  { elsewhere: ELSEWHERE },
);

/** What only this backend knows of the options. */
export const kubernetesOptions: Parser<KubernetesOptions> = parser("kubernetes", schema);

/** The image of a sandbox with these options. */
export function imageOf({ image, kubernetes }: SandboxOptions): string {
  return kubernetes?.image ?? image ?? DEFAULT_IMAGE;
}

/** The work directory of a sandbox with these options. */
export function workDirOf({ workDir: own, kubernetes }: SandboxOptions): string {
  return own ?? kubernetes?.workDir ?? WORK_DIR;
}

/** The numbers of the user and group that everything in a sandbox runs as. */
export function userOf({ user = DEFAULT_USER }: Pick<KubernetesOptions, "user">): { uid: number; gid: number } {
  const [uid, gid = uid] = user.split(":").map(Number);
  return { uid: uid ?? 0, gid: gid ?? 0 };
}

/** Refuses what a pod can't enforce, before anything is made. */
export function checkPossible(opts: SandboxOptions): void {
  const { image, kubernetes = {}, limits = {}, mounts = [] } = opts;
  if (image !== undefined) check(image, imageName, "image");
  if (image !== undefined && kubernetes.image !== undefined && image !== kubernetes.image) {
    throw new SandboxError("invalid_argument", "Option image does not go together with kubernetes.image");
  }
  if (opts.baseDir !== undefined) throw unsupported("baseDir", opts.baseDir, "a pod has its own files");
  if (opts.workspace !== undefined) throw unsupported("workspace", opts.workspace, "files go in as a copy");
  if (mounts.length > 0) {
    throw new SandboxError("unsupported", "The kubernetes backend mounts no host paths", {
      hint: "kubernetes: { podTemplate: … } adds volumes of the cluster; refreshFromHost copies files of this machine",
    });
  }
  if (limits.pids !== undefined) {
    throw unsupported(
      "limits.pids",
      String(limits.pids),
      "only the kubelet's own setting bounds the processes of a pod",
    );
  }
  if (limits.disk !== undefined) {
    throw unsupported("limits.disk", String(limits.disk), "a node ends a pod that has used more, it does not stop it", {
      hint: 'kubernetes: { resources: { "ephemeral-storage": "10Gi" } } lets the node do that',
    });
  }
  for (const [limit, resource] of [
    ["memory", "memory"],
    ["cpus", "cpu"],
  ] as const) {
    if (limits[limit] === undefined || kubernetes.resources?.[resource] === undefined) continue;
    const message = `Option limits.${limit} does not go together with kubernetes.resources.${resource}`;
    throw new SandboxError("invalid_argument", message);
  }
}

function unsupported(option: string, value: string, reason: string, more: { hint?: string } = {}): SandboxError {
  return new SandboxError("unsupported", `The kubernetes backend can't enforce ${option} "${value}": ${reason}`, more);
}
