import { expect, it } from "vitest";
import type { Sandbox } from "../../src/sandbox/types.js";
import { describeUnless } from "../support/describe-unless.js";
import { api, runInNode, testCluster, whyNoTestCluster } from "../support/kubernetes/cluster.js";
import { podOf } from "../support/kubernetes/harness.js";
import { expectNothingLeft } from "../support/kubernetes/left-of.js";
import { useKubePlace } from "../support/kubernetes/place.js";
import { refusalOf } from "../support/refused.js";

/** Drops everything that a node sends to or gets from the control plane and the other nodes. */
const CUT_OFF =
  "table inet cut { chain in { type filter hook input priority -10; ip saddr 10.96.128.0/24 drop; }; chain out { type filter hook output priority -10; ip daddr 10.96.128.0/24 drop; }; }";

describeUnless(whyNoTestCluster(), "a pod that ends", {}, () => {
  const place = useKubePlace("pod-loss");
  const pathOf = async (sandbox: Sandbox): Promise<string> =>
    `/api/v1/namespaces/${place.namespace}/pods/${await podOf(place.namespace, sandbox)}`;

  it("is named with the cluster's reason when the node evicts it", async () => {
    const kubernetes = {
      podTemplate: {
        spec: {
          volumes: [{ name: "small", emptyDir: { sizeLimit: "1Mi" } }],
          containers: [{ name: "sandbox", volumeMounts: [{ name: "small", mountPath: "/small" }] }],
        },
      },
    };
    const sandbox = await place.open({ kubernetes });
    const lost = refusalOf(sandbox.shell("head -c 20000000 /dev/zero > /small/file; sleep 600"));
    expect(await lost).toMatchObject({ code: "backend_lost", message: expect.stringMatching(/Evicted|evicted/) });
    await sandbox.teardown();
    await expectNothingLeft(place.namespace);
  });

  it("is named when it is deleted, and nothing of it is left", async () => {
    const sandbox = await place.open();
    const lost = refusalOf(sandbox.shell("sleep 600"));
    await api("DELETE", await pathOf(sandbox), { gracePeriodSeconds: 0 });
    expect(await lost).toMatchObject({ code: "backend_lost" });
    await sandbox.teardown();
    await expectNothingLeft(place.namespace);
  });

  it("is named with the scheduler's words when a pod of a higher priority takes its place", async () => {
    // Something that one node has once, so that nobody else's pod has to go.
    const thing = "glovebox.test/place";
    const node = testCluster().nodes[0]?.name ?? "";
    const priorities = "/apis/scheduling.k8s.io/v1/priorityclasses";
    const offer = (amount: string | null): Promise<unknown> =>
      api("PATCH", `/api/v1/nodes/${node}/status`, { status: { capacity: { [thing]: amount } } });
    await api("POST", priorities, { metadata: { name: "urgent" }, value: 1_000 });
    await offer("1");
    try {
      const allocatable = async (): Promise<unknown> =>
        (await api("GET", `/api/v1/nodes/${node}`)).status.allocatable[thing];
      await expect.poll(allocatable, { timeout: 60_000 }).toBe("1");
      const { resources } = place.options().kubernetes;
      const sandbox = await place.open({ kubernetes: { resources: { ...resources, [thing]: "1" } } });
      const lost = refusalOf(sandbox.shell("sleep 600"));
      const container = {
        ...{
          name: "main",
          image: "glovebox-test/busybox:1",
          imagePullPolicy: "IfNotPresent",
          command: ["sleep", "600"],
        },
        resources: { limits: { [thing]: "1" } },
      };
      const pods = `/api/v1/namespaces/${place.namespace}/pods`;
      const spec = { priorityClassName: "urgent", terminationGracePeriodSeconds: 0, containers: [container] };
      await api("POST", pods, { metadata: { name: "urgent" }, spec });
      expect(await lost).toMatchObject({
        code: "backend_lost",
        message: expect.stringContaining(`Preempted by ${place.namespace}/urgent on node ${node}`) as unknown,
        hint: expect.stringContaining("priorityClassName") as unknown,
      });
      await sandbox.teardown();
      await api("DELETE", `${pods}/urgent`);
    } finally {
      await offer(null);
      await api("DELETE", `${priorities}/urgent`);
    }
    await expectNothingLeft(place.namespace);
  });

  it("reports a command that the kernel killed for its memory", async () => {
    await using sandbox = await place.open({ limits: { memory: 128 << 20 } });
    const result = await sandbox.shell("exec tail < /dev/zero");
    expect(result).toMatchObject({ oomKilled: true });
    expect(await sandbox.shell("echo here")).toMatchObject({ stdout: "here\n" });
  });

  it("ends itself when its node is cut off for longer than the lease", async () => {
    const sandbox = await place.open({ kubernetes: { lease: 10_000 } });
    const { spec } = await api("GET", await pathOf(sandbox));
    const node = spec.nodeName as string;
    const marker = `glovebox-lease-${process.pid}`;
    const running = refusalOf(sandbox.shell(`exec -a ${marker} sleep 600`, { shellPath: "/bin/bash" }));
    const inNode = async (): Promise<string> =>
      await runInNode(node, "sh", "-c", `ps -eo args | grep -c '^${marker}' || true`);
    await expect.poll(inNode).toBe("1\n");
    await runInNode(node, "nft", CUT_OFF.replace("table inet cut", "add table inet cut; table inet cut"));
    try {
      // The node itself knows nothing of the lease: the guest ends everything.
      await expect.poll(inNode, { timeout: 60_000 }).toBe("0\n");
    } finally {
      await runInNode(node, "nft", "delete", "table", "inet", "cut");
    }
    expect(await running).toMatchObject({ code: expect.stringMatching(/^(backend_lost|unavailable)$/) as unknown });
    await sandbox.teardown();
    await expectNothingLeft(place.namespace, 120_000);
  });
});
