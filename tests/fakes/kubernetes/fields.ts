import { badRequest } from "./refusal.js";

/** What a field may be. */
type Shape =
  | "text"
  | "number"
  | "bool"
  | "texts"
  | "map"
  | "any"
  | readonly [Shape]
  | { readonly [field: string]: Shape };

const META: Shape = {
  ...({ name: "text", generateName: "text", namespace: "text", uid: "text", resourceVersion: "text" } as const),
  ...{
    creationTimestamp: "text",
    deletionTimestamp: "text",
    deletionGracePeriodSeconds: "number",
    generation: "number",
  },
  ...({ labels: "map", annotations: "map", finalizers: "texts", managedFields: "any", selfLink: "text" } as const),
  ownerReferences: [
    { apiVersion: "text", kind: "text", name: "text", uid: "text", controller: "bool", blockOwnerDeletion: "bool" },
  ],
};
const KEYS: Shape = [{ key: "text", path: "text", mode: "number" }];
const SELECTOR: Shape = {
  matchLabels: "map",
  matchExpressions: [{ key: "text", operator: "text", values: "texts" }],
};
const CONTEXT = {
  ...({ runAsUser: "number", runAsGroup: "number", runAsNonRoot: "bool" } as const),
  seccompProfile: { type: "text", localhostProfile: "text" },
} as const;
const CONTAINER: Shape = {
  ...({
    name: "text",
    image: "text",
    imagePullPolicy: "text",
    command: "texts",
    args: "texts",
    workingDir: "text",
  } as const),
  ...{
    terminationMessagePath: "text",
    terminationMessagePolicy: "text",
    stdin: "bool",
    stdinOnce: "bool",
    tty: "bool",
  },
  env: [{ name: "text", value: "text", valueFrom: "any" }],
  resources: { requests: "map", limits: "map" },
  ports: [{ containerPort: "number", name: "text", protocol: "text", hostPort: "number" }],
  volumeMounts: [{ name: "text", mountPath: "text", readOnly: "bool", subPath: "text" }],
  securityContext: {
    ...CONTEXT,
    ...({
      privileged: "bool",
      allowPrivilegeEscalation: "bool",
      readOnlyRootFilesystem: "bool",
      procMount: "text",
    } as const),
    capabilities: { add: "texts", drop: "texts" },
  },
};
const POD: Shape = {
  ...({ restartPolicy: "text", activeDeadlineSeconds: "number", terminationGracePeriodSeconds: "number" } as const),
  ...({ automountServiceAccountToken: "bool", enableServiceLinks: "bool", shareProcessNamespace: "bool" } as const),
  ...({
    hostNetwork: "bool",
    hostPID: "bool",
    hostIPC: "bool",
    nodeName: "text",
    nodeSelector: "map",
    hostname: "text",
  } as const),
  ...({ serviceAccountName: "text", runtimeClassName: "text", priorityClassName: "text", subdomain: "text" } as const),
  ...{
    schedulerName: "text",
    dnsPolicy: "text",
    affinity: "any",
    dnsConfig: "any",
    imagePullSecrets: [{ name: "text" }],
  },
  hostAliases: [{ ip: "text", hostnames: "texts" }],
  tolerations: [{ key: "text", operator: "text", value: "text", effect: "text", tolerationSeconds: "number" }],
  securityContext: {
    ...CONTEXT,
    ...({ fsGroup: "number", fsGroupChangePolicy: "text", supplementalGroups: "any", sysctls: "any" } as const),
  },
  containers: [CONTAINER],
  initContainers: [CONTAINER],
  volumes: [
    {
      name: "text",
      emptyDir: { medium: "text", sizeLimit: "text" },
      configMap: { name: "text", defaultMode: "number", optional: "bool", items: KEYS },
      persistentVolumeClaim: { claimName: "text", readOnly: "bool" },
      secret: { secretName: "text", defaultMode: "number", optional: "bool", items: KEYS },
    },
  ],
};
const PORTS: Shape = [{ port: "any", protocol: "text", endPort: "number" }];
const PEERS: Shape = [
  { podSelector: SELECTOR, namespaceSelector: SELECTOR, ipBlock: { cidr: "text", except: "texts" } },
];
const object = (more: { readonly [field: string]: Shape }): Shape => ({
  apiVersion: "text",
  kind: "text",
  metadata: META,
  ...more,
});

const TEMPLATE: Shape = { metadata: { labels: "map", annotations: "map" }, spec: POD };

/** All fields that a client may send, by kind. Those that no part of Glovebox sends are not known here, and refused. */
const SHAPES: Readonly<Record<string, Shape>> = {
  Namespace: object({}),
  Pod: object({ spec: POD, status: "any" }),
  ConfigMap: object({ data: "map", binaryData: "map", immutable: "bool" }),
  Job: object({
    spec: {
      ...({
        parallelism: "number",
        completions: "number",
        backoffLimit: "number",
        activeDeadlineSeconds: "number",
      } as const),
      ...({ ttlSecondsAfterFinished: "number", suspend: "bool", manualSelector: "bool", selector: SELECTOR } as const),
      template: { metadata: META, spec: POD },
    },
    status: "any",
  }),
  NetworkPolicy: object({
    spec: {
      podSelector: SELECTOR,
      policyTypes: "texts",
      ingress: [{ from: PEERS, ports: PORTS }],
      egress: [{ to: PEERS, ports: PORTS }],
    },
  }),
  SandboxTemplate: object({
    spec: {
      ...{ podTemplate: TEMPLATE, volumeClaimTemplates: "any", service: "bool", networkPolicy: "any" },
      ...({ networkPolicyManagement: "text", envVarsInjectionPolicy: "text" } as const),
      volumeClaimTemplatesPolicy: "text",
    },
  }),
  SandboxWarmPool: object({
    spec: { replicas: "number", sandboxTemplateRef: { name: "text" }, updateStrategy: { type: "text" } },
    status: "any",
  }),
  SandboxClaim: object({
    spec: {
      warmPoolRef: { name: "text" },
      lifecycle: { shutdownTime: "text", ttlSecondsAfterFinished: "number", shutdownPolicy: "text" },
      additionalPodMetadata: { labels: "map", annotations: "map" },
      env: [{ name: "text", value: "text", containerName: "text" }],
      volumeClaimTemplates: "any",
    },
    status: "any",
  }),
  PersistentVolumeClaim: object({
    spec: {
      ...({ accessModes: "texts", storageClassName: "text", volumeName: "text", volumeMode: "text" } as const),
      ...{ resources: { requests: "map", limits: "map" }, selector: SELECTOR },
    },
    status: "any",
  }),
  SelfSubjectAccessReview: object({
    spec: {
      resourceAttributes: {
        ...({ namespace: "text", verb: "text", group: "text", version: "text" } as const),
        ...({ resource: "text", subresource: "text", name: "text" } as const),
      },
      nonResourceAttributes: { path: "text", verb: "text" },
    },
    status: "any",
  }),
  DeleteOptions: {
    ...({ apiVersion: "text", kind: "text", gracePeriodSeconds: "number", propagationPolicy: "text" } as const),
    ...{ orphanDependents: "bool", dryRun: "texts", preconditions: { uid: "text", resourceVersion: "text" } },
  },
};

/**
 * Refuses a body with a field that its kind doesn't have, or of another type. A server before 1.25 drops an unknown field without a word, and then
 * a sandbox is not what was asked for; this one never does.
 */
export function checkFields(kind: string, body: unknown): void {
  const shape = SHAPES[kind];
  if (shape === undefined) throw badRequest(`nothing here makes a ${kind}`);
  check(kind, body, shape, "");
}

function check(kind: string, value: unknown, shape: Shape, path: string): void {
  const wrong = (wanted: string): Error =>
    badRequest(`${kind} in version "v1" cannot be handled as a ${kind}: ${path || "it"} must be ${wanted}`);
  if (value === null || shape === "any") return;
  if (shape === "text" || shape === "number" || shape === "bool") {
    const wanted = { text: "string", number: "number", bool: "boolean" }[shape];
    if (typeof value !== wanted) throw wrong(wanted);
    if (shape === "number" && !Number.isSafeInteger(value)) throw wrong("an integer");
    return;
  }
  if (shape === "texts" || isList(shape)) {
    if (!Array.isArray(value)) throw wrong("a list");
    const each = shape === "texts" ? "text" : shape[0];
    for (const [index, item] of value.entries()) check(kind, item, each, `${path}[${index}]`);
    return;
  }
  if (typeof value !== "object" || Array.isArray(value)) throw wrong("an object");
  for (const [key, item] of Object.entries(value as Record<string, unknown>)) {
    const at = path === "" ? key : `${path}.${key}`;
    const known = shape === "map" ? "text" : shape[key];
    if (known === undefined) throw badRequest(`strict decoding error: unknown field "${at}"`);
    check(kind, item, known, at);
  }
}

function isList(shape: Shape): shape is readonly [Shape] {
  return Array.isArray(shape);
}
