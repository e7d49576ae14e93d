/** What differs between clusters, and what a test makes happen. It may change while the cluster runs. */
export interface Habits {
  /** The images that can be had. */
  readonly images: Set<string>;
  /** Whether the network keeps policies. */
  enforcesPolicies: boolean;
  /** Whether the network takes any pod under a policy for the peer of any other. */
  ignoresPeers: boolean;
  /** Whether an exec may end its program's input: from Kubernetes 1.30 on. */
  hasV5: boolean;
  /** Whether agent-sandbox is installed. */
  hasWarmPools: boolean;
  /** Pods that the namespace may have. */
  mostPods: number;
  /** Pods whose end is the kernel's. */
  readonly oomKilled: Set<string>;
  /** What the next requests get instead of an answer; each takes the first that is meant for it. */
  readonly faults: Fault[];
}

/** What happens to a request. */
export interface Fault {
  /** Such as `POST /apis/batch/v1/.*jobs$`. */
  readonly when: RegExp;
  /** An answer with this status and, in seconds, when to come back; or the end of the connection, before or after the request was done. */
  readonly then: { readonly status: number; readonly retryAfter?: number } | "reset" | "reset after";
}
