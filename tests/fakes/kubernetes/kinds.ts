/** A kind of object that the server knows. */
export interface Kind {
  readonly kind: string;
  /** `v1` or `group/version`. */
  readonly api: string;
  readonly plural: string;
  readonly isClusterWide?: true;
}

export const KINDS: readonly Kind[] = [
  { kind: "Namespace", api: "v1", plural: "namespaces", isClusterWide: true },
  { kind: "Node", api: "v1", plural: "nodes", isClusterWide: true },
  { kind: "Pod", api: "v1", plural: "pods" },
  { kind: "ConfigMap", api: "v1", plural: "configmaps" },
  { kind: "Event", api: "v1", plural: "events" },
  { kind: "PersistentVolumeClaim", api: "v1", plural: "persistentvolumeclaims" },
  { kind: "ServiceAccount", api: "v1", plural: "serviceaccounts" },
  { kind: "Job", api: "batch/v1", plural: "jobs" },
  { kind: "NetworkPolicy", api: "networking.k8s.io/v1", plural: "networkpolicies" },
  { kind: "Sandbox", api: "agents.x-k8s.io/v1beta1", plural: "sandboxes" },
  { kind: "SandboxTemplate", api: "extensions.agents.x-k8s.io/v1beta1", plural: "sandboxtemplates" },
  { kind: "SandboxWarmPool", api: "extensions.agents.x-k8s.io/v1beta1", plural: "sandboxwarmpools" },
  { kind: "SandboxClaim", api: "extensions.agents.x-k8s.io/v1beta1", plural: "sandboxclaims" },
  {
    kind: "SelfSubjectAccessReview",
    api: "authorization.k8s.io/v1",
    plural: "selfsubjectaccessreviews",
    isClusterWide: true,
  },
];

/** A path of the API, taken apart. */
export interface Place {
  readonly kind: Kind;
  readonly namespace: string;
  readonly name?: string;
  readonly subresource?: string;
}

/** The place that a path names; undefined if the server has nothing there. */
export function placeOf(path: string): Place | undefined {
  const [, api = "", rest = ""] = /^\/(?:api|apis)\/(v1|[^/]+\/[^/]+)\/(.*)$/.exec(path) ?? [];
  if (path.startsWith("/apis/") === (api === "v1")) return undefined;
  const parts = rest.split("/").map(decodeURIComponent);
  const isNamespaced = parts[0] === "namespaces" && parts.length > 2;
  const namespace = isNamespaced ? (parts[1] ?? "") : "";
  const [plural, name, subresource, ...more] = isNamespaced ? parts.slice(2) : parts;
  const kind = KINDS.find((each) => each.api === api && each.plural === plural);
  if (kind === undefined || more.length > 0 || name === "") return undefined;
  // Only a whole collection of something in namespaces has a path without one.
  if (kind.isClusterWide === true ? isNamespaced : !isNamespaced && name !== undefined) return undefined;
  return { kind, namespace, ...(name !== undefined && { name }), ...(subresource !== undefined && { subresource }) };
}

/** Whether a kind is of agent-sandbox, which not every cluster has. */
export function isOfAgentSandbox({ api }: Kind): boolean {
  return api.includes("agents.x-k8s.io/");
}

/** The group of a kind, as rules name it. */
export function groupOf({ api }: Kind): string {
  return api.includes("/") ? (api.split("/")[0] ?? "") : "";
}
