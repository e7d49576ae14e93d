declare global {
  interface GloveboxBackendOptions {
    kubernetes?: KubernetesOptions;
  }
}

/** What only the Kubernetes backend knows. */
export interface KubernetesOptions {
  /** The context of the kubeconfig. Default: the current one. */
  context?: string;
  /** Path of a kubeconfig. Default: KUBECONFIG, then `~/.kube/config`, then the service account of the pod that this process runs in. */
  kubeconfig?: string;
  /** Where everything is made. It must exist. Default: the namespace of the context, then `default`. */
  namespace?: string;
  /** Image of the container, instead of the option `image`. */
  image?: string;
  /** How containers are isolated, such as `gvisor` or `kata`. Default: as the cluster does it. */
  runtimeClassName?: string;
  /** Service account of the pod, for admission rules and pull secrets. Its token is never mounted. Default `default`. */
  serviceAccount?: string;
  /** Labels that the node must have. */
  nodeSelector?: Readonly<Record<string, string>>;
  /** Taints of nodes that the pod may run on. */
  tolerations?: readonly KubernetesToleration[];
  /**
   * Quantities of resources, such as `{ cpu: "500m", memory: "1Gi", "nvidia.com/gpu": "1" }`. They are requested and are the limits, too. Default: one
   * core and 2 GiB of memory.
   */
  resources?: Readonly<Record<string, string>>;
  /** Further fields of the pod: `metadata.labels`, `metadata.annotations` and a `spec`. What weakens the isolation is refused. */
  podTemplate?: KubernetesPodTemplate;
  /**
   * Name of a SandboxWarmPool of agent-sandbox, whose pods run already. A pod is refused unless it is what all other options ask for; `glovebox doctor
   * kubernetes` prints the pool to make. A pool without a free pod is passed by, with a warning. Default: each sandbox has a new pod.
   */
  warmPool?: string;
  /** Absolute path of the work directory; made when absent. Default `/workspace`. */
  workDir?: string;
  /** Numbers of the user and group that everything runs as: `uid` or `uid:gid`. Default `1000:1000`. With `0`, the image's files can be changed. */
  user?: string;
  /** How long the sandbox goes on without a connection to this process before it ends itself, in milliseconds. Default 60,000. */
  lease?: number;
}

/** A taint of nodes that a pod may run on, as in the pod's own `tolerations`. */
export interface KubernetesToleration {
  key?: string;
  operator?: "Equal" | "Exists";
  value?: string;
  effect?: "NoSchedule" | "PreferNoSchedule" | "NoExecute";
  tolerationSeconds?: number;
}

/** A part of a pod, as in the pod template of a Deployment. */
export interface KubernetesPodTemplate {
  metadata?: { labels?: Readonly<Record<string, string>>; annotations?: Readonly<Record<string, string>> };
  spec?: Readonly<Record<string, unknown>>;
}
