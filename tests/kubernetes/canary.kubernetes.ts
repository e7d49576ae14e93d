import { afterAll, expect, it } from "vitest";
import { KubeClient } from "../../src/sandbox/backends/kubernetes/client/kube-client.js";
import { findCluster } from "../../src/sandbox/backends/kubernetes/client/kubeconfig.js";
import { JOBS, NETWORK_POLICIES } from "../../src/sandbox/backends/kubernetes/client/resources.js";
import { ensureIsolation, whenProven } from "../../src/sandbox/backends/kubernetes/isolation.js";
import { ensureGuest } from "../../src/sandbox/backends/kubernetes/manifests/guest-config-map.js";
import { policyName } from "../../src/sandbox/backends/kubernetes/manifests/network-policy.js";
import { probeKubernetes } from "../../src/sandbox/backends/kubernetes/probe.js";
import { describeUnless } from "../support/describe-unless.js";
import { runInNode, testCluster, whyNoTestCluster } from "../support/kubernetes/cluster.js";
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

/** Answers on every node where clouds tell a machine its credentials. */
async function serveMetadata(): Promise<AsyncDisposable> {
  const nodes = testCluster().nodes.map(({ name }) => name);
  const address = "169.254.169.254";
  const marker = `/tmp/metadata-${process.pid}`;
  for (const node of nodes) {
    await runInNode(node, "ip", "address", "add", `${address}/32`, "dev", "lo");
    // It leaves a number by which it is found again.
    const serve = `mkdir -p ${marker} && (busybox httpd -f -p ${address}:80 -h ${marker} > /dev/null 2>&1 & echo $! > ${marker}/${node})`;
    await runInNode(node, "sh", "-c", serve);
  }
  return {
    async [Symbol.asyncDispose]() {
      for (const node of nodes) {
        await runInNode(
          node,
          "sh",
          "-c",
          `kill $(cat ${marker}/${node}); rm ${marker}/${node}; rmdir ${marker} || true`,
        );
        await runInNode(node, "ip", "address", "delete", `${address}/32`, "dev", "lo");
      }
    },
  };
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

  it("refuses a cluster whose pods reach the cloud's metadata, with any network, and proves one where they don't", async () => {
    const namespace = "canary-metadata";
    await using _ = await createNamespace(namespace);
    await using _cloud = await serveMetadata();
    await expectRefused(prove(await clientOf(namespace), "full"), "unsupported", "reached the cloud's metadata");
    await using _enforced = await enforcePolicies();
    const client = await clientOf(namespace);
    await prove(client, "full");
    expect(await whenProven(client, "full")).toMatch(/^\d{4}-/);
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
