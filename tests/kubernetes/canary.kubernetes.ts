import { afterAll, expect, it } from "vitest";
import { KubeClient } from "../../src/sandbox/backends/kubernetes/client/kube-client.js";
import { findCluster } from "../../src/sandbox/backends/kubernetes/client/kubeconfig.js";
import { JOBS, NETWORK_POLICIES } from "../../src/sandbox/backends/kubernetes/client/resources.js";
import { ensureIsolation, whenProven } from "../../src/sandbox/backends/kubernetes/isolation.js";
import { ensureGuest } from "../../src/sandbox/backends/kubernetes/manifests/guest-config-map.js";
import { policyName } from "../../src/sandbox/backends/kubernetes/manifests/network-policy.js";
import { probeKubernetes } from "../../src/sandbox/backends/kubernetes/probe.js";
import { describeUnless } from "../support/describe-unless.js";
import { testCluster, whyNoTestCluster } from "../support/kubernetes/cluster.js";
import { enforcePolicies } from "../support/kubernetes/enforce-policies.js";
import { createNamespace } from "../support/kubernetes/plain-pod.js";
import { expectRefused } from "../support/refused.js";

const IMAGE = "glovebox-test/busybox:1";
const clients: KubeClient[] = [];
afterAll(() => {
  for (const client of clients) client.close();
});

/** A client that knows nothing of earlier proofs. */
async function clientOf(namespace: string): Promise<KubeClient> {
  const client = new KubeClient(await findCluster({ kubeconfig: testCluster().kubeconfig, namespace }));
  clients.push(client);
  return client;
}

async function prove(client: KubeClient, network: "none" | "full", messages: string[] = []): Promise<void> {
  const { namespace } = client.access;
  const plan = { namespace, image: IMAGE, guest: await ensureGuest(client, "amd64"), options: {} };
  await ensureIsolation(client, network, plan, { progress: (message) => messages.push(message) });
}

describeUnless(whyNoTestCluster(), "the canary on a real cluster", {}, () => {
  it("refuses a cluster that enforces nothing, proves one that does, and leaves no pod", async () => {
    const namespace = "canary";
    await using _ = await createNamespace(namespace);
    const first = await clientOf(namespace);
    await expectRefused(prove(first, "none"), "unsupported", "reached another pod");
    expect(await whenProven(first, "none")).toBeUndefined();
    {
      await using _enforced = await enforcePolicies();
      // A failed proof is not remembered.
      await prove(first, "none");
    }
    expect(await whenProven(first, "none")).toMatch(/^\d{4}-/);
    const second: string[] = [];
    await prove(await clientOf(namespace), "none", second);
    expect(second).toEqual([]);
    expect((await first.list(JOBS, { namespace })).items).toEqual([]);
  });

  it("does not believe a policy that somebody has changed", async () => {
    const namespace = "canary-changed";
    await using _ = await createNamespace(namespace);
    const client = await clientOf(namespace);
    await prove(client, "full");
    const place = { namespace, name: policyName("full") };
    await client.patch(NETWORK_POLICIES, place, { spec: { ingress: [{}] } });
    await expectRefused(prove(await clientOf(namespace), "full"), "tampered", "somebody has changed it");
  });

  it("is one of doctor's findings, and a missing right names the role", async () => {
    const namespace = "canary-doctor";
    await using _ = await createNamespace(namespace);
    const { kubeconfig, weakKubeconfig } = testCluster();
    const look = (path: string): ReturnType<typeof probeKubernetes> =>
      probeKubernetes({ isThorough: true, options: { image: IMAGE, kubernetes: { kubeconfig: path, namespace } } });
    const admin = Object.fromEntries((await look(kubeconfig)).map((finding) => [finding.name, finding]));
    expect(admin).toMatchObject({
      namespace: { status: "ok" },
      rights: { status: "ok" },
      "network policies": { status: "limited" },
    });
    const weak = Object.fromEntries((await look(weakKubeconfig)).map((finding) => [finding.name, finding]));
    expect(weak).toMatchObject({ rights: { status: "missing" }, "network policies": { status: "unused" } });
    expect(weak["rights"]?.detail).toContain("create/get/list/delete jobs");
    expect(weak["rights"]?.manifest).toContain('    name: "weak"\n');
  });
});
