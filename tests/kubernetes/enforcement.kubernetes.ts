import { expect, it } from "vitest";
import { describeUnless } from "../support/describe-unless.js";
import { api, testCluster, whyNoTestCluster } from "../support/kubernetes/cluster.js";
import { enforcePolicies } from "../support/kubernetes/enforce-policies.js";
import { createNamespace, runInPod, startPlainPod } from "../support/kubernetes/plain-pod.js";

const NAMESPACE = "enforcement";
const SERVE = "while :; do echo hello | nc -l -p 8000; done";

describeUnless(whyNoTestCluster(), "network policies in the cluster of tests", {}, () => {
  it("are only kept while a test enforces them, on one node and between two", async () => {
    const nodes = testCluster().nodes.map(({ name }) => name);
    const [first = "", other = first] = nodes;
    await using _ = await createNamespace(NAMESPACE);
    await startPlainPod(NAMESPACE, "asks", { node: first, script: "sleep 1000", labels: { locked: "yes" } });
    const near = await startPlainPod(NAMESPACE, "near", { node: first, script: SERVE });
    const far = await startPlainPod(NAMESPACE, "far", { node: other, script: SERVE });
    const reach = async (address: string): Promise<number> =>
      await runInPod(first, NAMESPACE, "asks", "sh", "-c", `nc -w 2 ${address} 8000 < /dev/null | grep hello`);
    const both = async (): Promise<number[]> => [await reach(near), await reach(far)];

    await api("POST", `/apis/networking.k8s.io/v1/namespaces/${NAMESPACE}/networkpolicies`, {
      metadata: { name: "locked" },
      spec: { podSelector: { matchLabels: { locked: "yes" } }, policyTypes: ["Ingress", "Egress"] },
    });
    expect(await both()).toEqual([0, 0]);
    {
      await using _enforced = await enforcePolicies();
      await expect.poll(both).toEqual([1, 1]);
      await api("DELETE", `/apis/networking.k8s.io/v1/namespaces/${NAMESPACE}/networkpolicies/locked`);
      await expect.poll(both).toEqual([0, 0]);
    }
    expect(await both()).toEqual([0, 0]);
  });
});
