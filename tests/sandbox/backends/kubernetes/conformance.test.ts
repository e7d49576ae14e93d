import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { runtimeDir, sandboxesDir } from "../../../../src/machine/home.js";
import { createKubernetesSandbox, kubernetes } from "../../../../src/sandbox/backends/kubernetes.js";
import type { Sandbox } from "../../../../src/sandbox/types.js";
import { removeSandbox } from "../../../../src/sandbox.js";
import { FakeCluster } from "../../../fakes/kubernetes/cluster.js";
import { describeUnless } from "../../../support/describe-unless.js";
import { whyNoFakeCluster } from "../../../support/kubernetes/fake-place.js";
import { collected } from "../../../support/kubernetes/harness.js";
import { createScratch } from "../../../support/scratch.js";
import { testConformance } from "../../../support/test-conformance.js";

describeUnless(whyNoFakeCluster(), "the kit on an API server of ours", {}, () => {
  const scratch = createScratch();
  const opened: Sandbox[] = [];
  const unlimited = "pods of the fake have no limits";
  // A pod that a policy cuts off has no interface here.
  const { "network.none-interfaces": _, ...skips } = kubernetes.conformance?.skips ?? {};
  let cluster: FakeCluster;
  beforeAll(async () => {
    cluster = await FakeCluster.start(join(scratch.path, "cluster"));
  });
  afterAll(async () => {
    await cluster.stop();
    scratch.remove();
  });
  testConformance(
    {
      backend: "kubernetes",
      skips: { ...skips, "limits.memory": unlimited },
      async open(opts = {}) {
        const own = { kubeconfig: cluster.kubeconfig, lease: 20_000, ...opts.kubernetes };
        const image = { image: "glovebox-test/debian:1" };
        const sandbox = await createKubernetesSandbox(
          opts.id === undefined ? { ...image, ...opts, kubernetes: own } : opts,
        );
        opened.push(sandbox);
        return sandbox;
      },
      remove: removeSandbox,
      census: async () => [
        ...(await collected(() => cluster.objectsOfSandboxes())),
        ...opened.map(({ id }) => runtimeDir(id)).filter((path) => existsSync(path)),
        ...readdirSync(sandboxesDir()),
      ],
      host: {
        sharesNetwork: false,
        sever: async ({ id }) => cluster.deletePod(id),
      },
    },
    undefined,
    // Without a limit it passes where other work takes the processors.
    { concurrent: true, notRun: { "limits.cpus": unlimited } },
  );
});
