import { runInNode, testCluster } from "./cluster.js";
import { type AnyObject, follow } from "./follow.js";

/** The addresses of all pods, and those of nodes and the control plane. */
const PODS = "10.97.0.0/16";
const NODES = "10.96.128.0/24";

interface Policy extends AnyObject {
  spec: {
    podSelector: Selector;
    policyTypes?: ("Ingress" | "Egress")[];
    ingress?: { from?: Peer[]; ports?: unknown[] }[];
    egress?: { to?: Peer[]; ports?: unknown[] }[];
  };
}
interface Selector {
  matchLabels?: Record<string, string>;
  matchExpressions?: unknown[];
}
interface Peer {
  podSelector?: Selector;
  ipBlock?: { cidr: string; except?: string[] };
}

/**
 * Does for the cluster what its network does not: enforces network policies, by rules in the network of each node. What it has not seen yet is
 * cut off, so that no pod starts unprotected. Knows policies that allow nothing, everything, pods by their labels, or all addresses but some, and refuses any other.
 */
export async function enforcePolicies(): Promise<AsyncDisposable> {
  const end = new AbortController();
  let pods: readonly AnyObject[] = [];
  let policies: readonly Policy[] = [];
  let applying: Promise<void> | undefined;
  let isStale = false;
  let failure: Error | undefined;
  const apply = (): void => {
    isStale = true;
    applying ??= (async () => {
      while (isStale && !end.signal.aborted) {
        isStale = false;
        await write(rulesFor(pods, policies));
      }
    })()
      .catch((error: Error) => {
        failure = error;
      })
      .finally(() => {
        applying = undefined;
      });
  };
  apply();
  await applying;
  const following = [
    follow("/api/v1/pods", end.signal, (all) => {
      pods = all;
      apply();
    }),
    follow("/apis/networking.k8s.io/v1/networkpolicies", end.signal, (all) => {
      policies = all as readonly Policy[];
      apply();
    }),
  ];
  return {
    async [Symbol.asyncDispose]() {
      end.abort();
      await Promise.all([...following, applying]);
      await write("delete table inet policies\n");
      if (failure) throw failure;
    },
  };
}

async function write(rules: string): Promise<void> {
  for (const { name } of testCluster().nodes) {
    await runInNode(name, "sh", "-c", 'printf %s "$1" | nft -f -', "sh", rules);
  }
}

/** A packet from pod to pod passes when one may send it and the other may get it. Answers always pass. */
function rulesFor(pods: readonly AnyObject[], policies: readonly Policy[]): string {
  const here = pods.filter(({ status }) => status?.podIP && !["Succeeded", "Failed"].includes(status.phase as string));
  const mayReach = (from: AnyObject, to: AnyObject): boolean =>
    allows(from, "Egress", policies, to) && allows(to, "Ingress", policies, from);
  const pairs = here.flatMap((from) =>
    here
      .filter((to) => from !== to && mayReach(from, to))
      .map((to) => `${from.status.podIP as string} . ${to.status.podIP as string}`),
  );
  const excepted = here.flatMap((pod) =>
    exceptions(pod, policies).map((address) => `${pod.status.podIP as string} . ${address}`),
  );
  const free = here
    .filter((pod) => allows(pod, "Egress", policies, undefined))
    .map(({ status }) => status.podIP as string);
  return `add table inet policies
delete table inet policies
table inet policies {
  set pairs { type ipv4_addr . ipv4_addr; ${elements(pairs)} }
  set excepted { type ipv4_addr . ipv4_addr; flags interval; ${elements(excepted)} }
  set free { type ipv4_addr; ${elements(free)} }
  chain passing {
    type filter hook forward priority 0; policy drop;
    ct state established,related accept
    ip saddr ${NODES} accept
    ip saddr . ip daddr @excepted drop
    ip saddr . ip daddr @pairs accept
    ip saddr @free ip daddr != ${PODS} accept
  }
  chain arriving {
    type filter hook input priority 0; policy accept;
    ct state established,related accept
    ip saddr . ip daddr @excepted drop
    ip saddr @free accept
    ip saddr ${PODS} drop
  }
}
`;
}

function elements(values: readonly string[]): string {
  return values.length === 0 ? "" : `elements = { ${[...new Set(values)].join(", ")} }`;
}

/** The addresses that the policies take out of what they let a pod reach. */
function exceptions(pod: AnyObject, policies: readonly Policy[]): string[] {
  const own = policies.filter(
    ({ metadata, spec }) => metadata.namespace === pod.metadata.namespace && selects(spec.podSelector, pod),
  );
  const peers = own.flatMap(({ spec }) => (spec.egress ?? []).flatMap(({ to = [] }) => to));
  return peers.flatMap(({ ipBlock }) => (ipBlock?.cidr === "0.0.0.0/0" ? (ipBlock.except ?? []) : []));
}

/** Whether the policies let a pod talk to a peer in one direction; no peer stands for what is not a pod. */
function allows(
  pod: AnyObject,
  direction: "Ingress" | "Egress",
  policies: readonly Policy[],
  peer: AnyObject | undefined,
): boolean {
  const selecting = policies.filter(
    ({ metadata, spec }) =>
      metadata.namespace === pod.metadata.namespace &&
      selects(spec.podSelector, pod) &&
      (spec.policyTypes ?? ["Ingress"]).includes(direction),
  );
  if (selecting.length === 0) return true;
  return selecting.some(({ metadata, spec }) => {
    const rules = direction === "Ingress" ? spec.ingress : spec.egress;
    return (rules ?? []).some((rule) => {
      if (rule.ports?.length) throw new Error(`the policy ${metadata.name} has ports, which are not enforced here`);
      const peers = "from" in rule ? rule.from : "to" in rule ? rule.to : undefined;
      if (peers === undefined) return true;
      return peers.some(({ podSelector, ipBlock, ...other }) => {
        // Exceptions from the block are dropped by a rule of their own.
        if (ipBlock?.cidr === "0.0.0.0/0") return true;
        if (ipBlock?.cidr === "::/0") return false;
        if (podSelector === undefined || ipBlock !== undefined || Object.keys(other).length > 0) {
          throw new Error(`the policy ${metadata.name} has peers that are not enforced here`);
        }
        return peer?.metadata.namespace === metadata.namespace && peer !== undefined && selects(podSelector, peer);
      });
    });
  });
}

function selects({ matchLabels = {}, matchExpressions }: Selector, pod: AnyObject): boolean {
  if (matchExpressions?.length) throw new Error("selectors by expressions are not enforced here");
  return Object.entries(matchLabels).every(([key, value]) => pod.metadata.labels?.[key] === value);
}
