import { BlockList, isIPv6 } from "node:net";
import type { KubeObject } from "./client/resources.js";
import { HOME_LABEL, KEPT_LABEL, MANAGED, NETWORK_LABEL, SANDBOX_LABEL } from "./labels.js";
import type { PodNetwork } from "./manifests/network-policy.js";

/** The parts of a NetworkPolicy that we read. */
export interface PolicyObject extends KubeObject {
  spec?: Record<string, unknown> & {
    podSelector?: LabelSelector | null;
    ingress?: readonly unknown[] | null;
    egress?: readonly EgressRule[] | null;
  };
}
interface LabelSelector {
  matchLabels?: Readonly<Record<string, string>> | null;
  matchExpressions?: readonly { key?: string; operator?: string; values?: readonly string[] | null }[] | null;
}
interface EgressRule {
  to?: readonly { ipBlock?: { cidr?: string; except?: readonly string[] | null } | null }[] | null;
}

/** Labels whose values differ from pod to pod, or that the cluster adds. */
const VARYING = new Set([
  ...[SANDBOX_LABEL, HOME_LABEL, KEPT_LABEL, "job-name", "controller-uid"],
  ...["agents.x-k8s.io/claim-uid", "agents.x-k8s.io/sandbox-name-hash"],
]);
/** One of each network in METADATA_ADDRESSES. */
const METADATA = [
  ...["169.254.169.254", "100.100.100.200", "192.0.0.192", "168.63.129.16"],
  ...["fe80::a9fe:a9fe", "fd00:ec2::254", "fd20:ce::254"],
];

/** The labels of a pod without those that differ from pod to pod. */
export function lastingLabels(labels: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).filter(([key]) => !isVarying(key)));
}

function isVarying(key: string): boolean {
  return VARYING.has(key) || key.startsWith("batch.kubernetes.io/");
}

/** The labels of the pods of a plan, without those that differ from pod to pod. */
export function labelsOf(
  own: Readonly<Record<string, string>> | undefined,
  network: PodNetwork,
): Record<string, string> {
  return { ...own, ...MANAGED, [NETWORK_LABEL]: network };
}

/**
 * What another policy of the namespace opens for pods with these labels; undefined if nothing. Policies add up: what one allows, no other can deny. Whatever
 * can't be understood counts as open.
 */
export function openedBy(
  policy: PolicyObject,
  network: PodNetwork,
  labels: Readonly<Record<string, string>>,
): string | undefined {
  const { podSelector, ingress, egress } = policy.spec ?? {};
  if (!selects(podSelector ?? {}, labels)) return undefined;
  if (network === "full") return (egress ?? []).some(reachesMetadata) ? "the cloud's metadata" : undefined;
  if ((egress ?? []).length > 0) return "a way out";
  return (ingress ?? []).length > 0 ? "a way in" : undefined;
}

function selects({ matchLabels, matchExpressions }: LabelSelector, labels: Readonly<Record<string, string>>): boolean {
  const wanted = Object.entries(matchLabels ?? {}).map(([key, value]) => ({ key, operator: "In", values: [value] }));
  return [...wanted, ...(matchExpressions ?? [])].every(({ key = "", operator, values }) => {
    if (isVarying(key)) return true;
    const own = labels[key];
    const isOne = own !== undefined && (values ?? []).includes(own);
    if (operator === "In") return isOne;
    if (operator === "NotIn") return !isOne;
    if (operator === "Exists") return own !== undefined;
    return operator !== "DoesNotExist" || own === undefined;
  });
}

/** A peer that is chosen by labels is a pod, and so is no metadata service. */
function reachesMetadata({ to }: EgressRule): boolean {
  const peers = to ?? [];
  if (peers.length === 0) return true;
  return peers.some(({ ipBlock }) => {
    if (ipBlock === undefined || ipBlock === null) return false;
    const [within, without] = [listOf([ipBlock.cidr ?? ""]), listOf(ipBlock.except ?? [])];
    if (within === undefined || without === undefined) return true;
    return METADATA.some((address) => has(within, address) && !has(without, address));
  });
}

function has(list: BlockList, address: string): boolean {
  return list.check(address, isIPv6(address) ? "ipv6" : "ipv4");
}

/** Undefined if one of them is no network. */
function listOf(networks: readonly string[]): BlockList | undefined {
  const list = new BlockList();
  try {
    for (const network of networks) {
      const [address = "", length = ""] = network.split("/");
      list.addSubnet(address, Number(length), isIPv6(address) ? "ipv6" : "ipv4");
    }
    return list;
  } catch {
    return undefined;
  }
}
