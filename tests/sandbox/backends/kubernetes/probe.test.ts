import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { probeKubernetes } from "../../../../src/sandbox/backends/kubernetes/probe.js";
import { createKubernetesSandbox } from "../../../../src/sandbox/backends/kubernetes.js";
import { FakeCluster } from "../../../fakes/kubernetes/cluster.js";
import { describeUnless } from "../../../support/describe-unless.js";
import { whyNoFakeCluster } from "../../../support/kubernetes/fake-place.js";
import { expectRefused } from "../../../support/refused.js";
import { createScratch } from "../../../support/scratch.js";

const image = "glovebox-test/debian:1";

describeUnless(whyNoFakeCluster(), "doctor and the canary, on a cluster of ours", {}, () => {
  const scratch = createScratch();
  let cluster: FakeCluster;
  beforeAll(async () => {
    cluster = await FakeCluster.start(join(scratch.path, "cluster"));
  });
  afterAll(async () => {
    await cluster.stop();
    scratch.remove();
  });
  const look = async (kubeconfig: string, namespace: string): Promise<Record<string, unknown>> => {
    const found = await probeKubernetes({
      isThorough: true,
      options: { image, kubernetes: { kubeconfig, namespace } },
    });
    return Object.fromEntries(found.map((finding) => [finding.name, finding]));
  };
  const leftIn = (namespace: string): string[] =>
    ["Job", "Pod"].flatMap((kind) => cluster.store.list(kind, namespace)).map(({ metadata }) => metadata.name);

  it("finds everything in order where policies are enforced, and leaves nothing", async () => {
    cluster.addNamespace("enforced");
    expect(await look(cluster.kubeconfig, "enforced")).toMatchObject({
      cluster: { status: "ok" },
      namespace: { status: "ok" },
      rights: { status: "ok" },
      "network policies": { status: "ok" },
    });
    await expect.poll(() => leftIn("enforced")).toEqual([]);
  });

  it("refuses a sandbox where policies are not enforced, before its pod is made", async () => {
    cluster.addNamespace("open");
    cluster.habits.enforcesPolicies = false;
    try {
      expect(await look(cluster.kubeconfig, "open")).toMatchObject({ "network policies": { status: "limited" } });
      const kubernetes = { kubeconfig: cluster.kubeconfig, namespace: "open" };
      for (const network of ["none", { allow: ["example.com"] }] as const) {
        const opening = createKubernetesSandbox({ image, network, kubernetes });
        await expectRefused(opening, "unsupported", "does not enforce", "reached another pod");
      }
      expect(cluster.objectsOfSandboxes()).toEqual([]);
      await expect.poll(() => leftIn("open")).toEqual([]);
    } finally {
      cluster.habits.enforcesPolicies = true;
    }
  });

  it("names each verb that is missing, and prints the role", async () => {
    cluster.addNamespace("weak");
    const rules = [
      { groups: [""], resources: ["pods", "pods/exec"], verbs: ["get", "list", "watch", "create"] },
      { groups: ["batch"], resources: ["jobs"], verbs: ["get", "list"] },
    ];
    const { kubeconfig } = cluster.addUser("jane", rules);
    const found = await look(kubeconfig, "weak");
    expect(found).toMatchObject({ rights: { status: "missing" }, "network policies": { status: "unused" } });
    const { detail, manifest } = found["rights"] as { detail: string; manifest: string };
    expect(detail).toContain("create/delete jobs");
    expect(detail).toContain("get/list/create/patch networkpolicies");
    expect(detail).not.toContain("pods/exec");
    expect(manifest).toContain('verbs: ["get", "list", "create", "patch"]');
    expect(manifest).toContain('    name: "jane"\n');
    expect(leftIn("weak")).toEqual([]);
  });
});
