import { BUSYBOX, DEBIAN, ensureArchive } from "./image-cache.mjs";
import { ClusterNotPossible, ensureKubernetes } from "./kubernetes/cache.mjs";
import { startCluster } from "./kubernetes/cluster.mjs";
import { whyNoCluster } from "./kubernetes/why-not.mjs";
import { runSeparateSuite } from "./separate-suite.mjs";
import { step } from "./step.mjs";
import { ensureClusterParts } from "./system-parts.mjs";

/**
 * Runs the kubernetes backend on a cluster of two nodes, which is compiled first where that was not done before. Every file uses the one cluster.
 * `GLOVEBOX_TEST_CLUSTER` names that of a running `npm run kubernetes:up`, which is used instead. Where no cluster can be made, the tests are not
 * run, and printed as such.
 */
let cluster;
await runSeparateSuite({ config: "vitest.kubernetes.config.ts", packages: [], install: start });
await cluster?.stop();

async function start() {
  if (process.env.GLOVEBOX_TEST_CLUSTER) return;
  await step("cluster parts", ensureClusterParts).catch(() => {});
  const reason = whyNoCluster() ?? (await startOrSayWhy());
  if (reason !== undefined) process.env.GLOVEBOX_TEST_NO_CLUSTER = reason;
}

async function startOrSayWhy() {
  let reason;
  await step("cluster", async (progress) => {
    try {
      const programs = await ensureKubernetes(progress);
      const images = {};
      for (const name of [BUSYBOX, DEBIAN]) images[name] = await ensureArchive(name, progress);
      cluster = await startCluster({ programs, nodes: 2, images, onLine: progress });
      process.env.GLOVEBOX_TEST_CLUSTER = cluster.path;
    } catch (error) {
      if (!(error instanceof ClusterNotPossible)) throw error;
      reason = error.message;
    }
  });
  return reason;
}
