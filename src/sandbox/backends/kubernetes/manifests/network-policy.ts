import { MANAGED, NETWORK_LABEL, SHARED_LABEL, TASK_LABEL } from "../labels.js";

/** What the pods of a sandbox may reach: nothing, or everything but metadata addresses. */
export type PodNetwork = "none" | "full";

/** Where clouds tell a machine its credentials. No sandbox may ask there. The other address of AWS is link-local, as is that of nearly everybody. */
export const METADATA_ADDRESSES = {
  v4: ["169.254.0.0/16", "100.100.100.200/32", "192.0.0.192/32", "168.63.129.16/32"],
  v6: ["fe80::/10", "fd00:ec2::/32", "fd20:ce::/32"],
} as const;

/** The name of the policy that all pods with such a network share. */
export function policyName(network: PodNetwork): string {
  return `glovebox-network-${network}`;
}

/** What the policy says. */
export function policySpec(network: PodNetwork): object {
  const blocks = [
    { cidr: "0.0.0.0/0", except: METADATA_ADDRESSES.v4 },
    { cidr: "::/0", except: METADATA_ADDRESSES.v6 },
  ];
  return {
    podSelector: { matchLabels: { [NETWORK_LABEL]: network } },
    policyTypes: ["Ingress", "Egress"],
    ...(network === "full" && { egress: [{ to: blocks.map((ipBlock) => ({ ipBlock })) }] }),
  };
}

/** The body of the call that makes the policy. It is there before the first pod, and stays for the next one. */
export function policyManifest(network: PodNetwork): object {
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: { name: policyName(network), labels: { ...MANAGED, [SHARED_LABEL]: "policy" } },
    spec: policySpec(network),
  };
}

/** The name of the policy that lets the pods of one task reach each other. */
export function taskPolicyName(task: string): string {
  return `glovebox-task-${task}`;
}

/** What it says. It only adds to what the pods may reach anyway: policies add up. */
export function taskPolicySpec(task: string): object {
  const podSelector = { matchLabels: { [TASK_LABEL]: task } };
  return {
    podSelector,
    policyTypes: ["Ingress", "Egress"],
    ingress: [{ from: [{ podSelector }] }],
    egress: [{ to: [{ podSelector }] }],
  };
}

/** The body of the call that makes it. */
export function taskPolicyManifest(
  task: string,
  marks: { readonly labels: Readonly<Record<string, string>>; readonly annotations?: Readonly<Record<string, string>> },
): object {
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: { name: taskPolicyName(task), ...marks, labels: { ...marks.labels, [TASK_LABEL]: task } },
    spec: taskPolicySpec(task),
  };
}
