import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { killAndGoOn } from "../support/batch/kill-and-go-on.js";
import { type Bench, createBench } from "../support/cli.js";
import { describeUnless } from "../support/describe-unless.js";
import { api, control, testCluster, whyNoTestCluster } from "../support/kubernetes/cluster.js";
import { enforcePolicies } from "../support/kubernetes/enforce-policies.js";
import { createNamespace } from "../support/kubernetes/plain-pod.js";

const TASKS = 300;
const NAMESPACE = `batch-${process.pid}`;

describeUnless(whyNoTestCluster(), "a batch on a real cluster", {}, () => {
  let bench: Bench;
  let kubeconfig: string;
  const made: AsyncDisposable[] = [];
  beforeAll(async () => {
    bench = createBench();
    made.push(await createNamespace(NAMESPACE));
    made.push(await enforcePolicies());
    const config = JSON.parse(readFileSync(testCluster().kubeconfig, "utf8")) as { contexts: { context: object }[] };
    for (const each of config.contexts) Object.assign(each.context, { namespace: NAMESPACE });
    kubeconfig = join(bench.path, "kubeconfig");
    writeFileSync(kubeconfig, JSON.stringify(config));
  });
  afterAll(async () => {
    for (const each of made.reverse()) await each[Symbol.asyncDispose]();
    bench.remove();
  });

  it(`of ${TASKS} tasks has one result each though its driver was killed three times and the API server once`, {
    timeout: 900_000,
  }, async () => {
    await killAndGoOn(bench, {
      name: "kubernetes",
      count: TASKS,
      argv: ["-b", "kubernetes", "--image", "glovebox-test/debian:1", "-c", "8"],
      env: { KUBECONFIG: kubeconfig },
      async beforeKill(kill) {
        if (kill !== 2) return;
        await control("kill", { name: "kube-apiserver" });
        await delay(1_000);
        await control("start", { name: "kube-apiserver" });
        // The driver goes on before it is killed, too.
        await delay(5_000);
      },
    });
    const left = async (kind: string): Promise<string[]> => {
      const { items } = await api("GET", `${kind.replace("/*", `/namespaces/${NAMESPACE}`)}`);
      return (items as { metadata: { name: string; labels?: Record<string, string> } }[])
        .filter(({ metadata }) => metadata.labels?.["glovebox/sandbox"] !== undefined)
        .map(({ metadata }) => metadata.name);
    };
    for (const kind of ["/apis/batch/v1/*/jobs", "/api/v1/*/pods", "/apis/networking.k8s.io/v1/*/networkpolicies"]) {
      await expect.poll(() => left(kind), { timeout: 120_000 }).toEqual([]);
    }
  });
});
