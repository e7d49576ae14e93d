/** A kind of object at the API server. */
export interface ResourceKind {
  /** `v1`, or `group/version`. */
  readonly api: string;
  /** As it is in paths, and in the rules of RBAC. */
  readonly plural: string;
  readonly isClusterWide?: true;
}

export const PODS: ResourceKind = { api: "v1", plural: "pods" };
export const CONFIG_MAPS: ResourceKind = { api: "v1", plural: "configmaps" };
export const EVENTS: ResourceKind = { api: "v1", plural: "events" };
export const NAMESPACES: ResourceKind = { api: "v1", plural: "namespaces", isClusterWide: true };
export const NODES: ResourceKind = { api: "v1", plural: "nodes", isClusterWide: true };
export const JOBS: ResourceKind = { api: "batch/v1", plural: "jobs" };
export const NETWORK_POLICIES: ResourceKind = { api: "networking.k8s.io/v1", plural: "networkpolicies" };
export const ACCESS_REVIEWS: ResourceKind = {
  api: "authorization.k8s.io/v1",
  plural: "selfsubjectaccessreviews",
  isClusterWide: true,
};

/** Of agent-sandbox, which not every cluster has. */
const POOLS_API = "extensions.agents.x-k8s.io/v1beta1";
export const SANDBOX_CLAIMS: ResourceKind = { api: POOLS_API, plural: "sandboxclaims" };
export const SANDBOX_TEMPLATES: ResourceKind = { api: POOLS_API, plural: "sandboxtemplates" };
export const WARM_POOLS: ResourceKind = { api: POOLS_API, plural: "sandboxwarmpools" };
export const SANDBOXES: ResourceKind = { api: "agents.x-k8s.io/v1beta1", plural: "sandboxes" };

/** Where one object is, or all of a kind. */
export interface ObjectPlace {
  /** Ignored for what is not in a namespace. */
  readonly namespace: string;
  readonly name?: string;
  /** Such as `exec` of a pod. */
  readonly subresource?: string;
}

/** The path of an object or a collection, relative to the server's address. */
export function pathOf(kind: ResourceKind, { namespace, name, subresource }: ObjectPlace): string {
  const root = kind.api.includes("/") ? `/apis/${kind.api}` : `/api/${kind.api}`;
  const within = kind.isClusterWide === true ? [] : ["namespaces", namespace];
  const parts = [...within, kind.plural, ...(name === undefined ? [] : [name]), ...(subresource ? [subresource] : [])];
  return `${root}/${parts.map(encodeURIComponent).join("/")}`;
}

/** What every object has in common. */
export interface ObjectMeta {
  name: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: { apiVersion: string; kind: string; name: string; uid: string; controller?: boolean }[];
}

/** An object as the API server returns it. */
export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
}

/** One state of a container: exactly one of the three. */
export interface ContainerState {
  waiting?: { reason?: string; message?: string };
  running?: { startedAt?: string };
  terminated?: { exitCode: number; signal?: number; reason?: string; message?: string };
}

/** What a kubelet reports about a container. */
export interface ContainerStatus {
  name: string;
  ready?: boolean;
  restartCount?: number;
  image?: string;
  imageID?: string;
  containerID?: string;
  state?: ContainerState;
  lastState?: ContainerState;
}

/** A condition in the status of an object. */
export interface ObjectCondition {
  type: string;
  status: "True" | "False" | "Unknown";
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
}

/** The parts of a pod that we read. */
export interface Pod extends KubeObject {
  spec?: { readonly [field: string]: unknown; nodeName?: string; containers?: { name: string; image?: string }[] };
  status?: {
    phase?: "Pending" | "Running" | "Succeeded" | "Failed" | "Unknown";
    reason?: string;
    message?: string;
    podIP?: string;
    hostIP?: string;
    conditions?: ObjectCondition[];
    containerStatuses?: ContainerStatus[];
    initContainerStatuses?: ContainerStatus[];
  };
}

/** What a part of the cluster has to say about an object. */
export interface ClusterEvent extends KubeObject {
  reason?: string;
  message?: string;
  type?: string;
}

/** The parts of a Job that we read. */
export interface Job extends KubeObject {
  status?: { active?: number; succeeded?: number; failed?: number; conditions?: ObjectCondition[] };
}
