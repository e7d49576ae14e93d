import { MANAGED, NETWORK_LABEL, SHARED_LABEL } from "../labels.js";

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
