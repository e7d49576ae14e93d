import { afterAll, beforeAll } from "vitest";
import { describeUnless } from "../support/describe-unless.js";
import { testCluster, whyNoTestCluster } from "../support/kubernetes/cluster.js";
import { enforcePolicies } from "../support/kubernetes/enforce-policies.js";
import { createKubernetesHarness } from "../support/kubernetes/harness.js";
import { createNamespace } from "../support/kubernetes/plain-pod.js";
import { createScratch } from "../support/scratch.js";
import { testConformance } from "../support/test-conformance.js";

const NAMESPACE = `conformance-${process.pid}`;

describeUnless(whyNoTestCluster(), "the kit on a real cluster", {}, () => {
  const scratch = createScratch();
  const made: AsyncDisposable[] = [];
  beforeAll(async () => {
    made.push(await createNamespace(NAMESPACE));
    made.push(await enforcePolicies());
  });
  afterAll(async () => {
    for (const each of made.reverse()) await each[Symbol.asyncDispose]();
    scratch.remove();
  });
  const options = {
    kubeconfig: whyNoTestCluster() === undefined ? testCluster().kubeconfig : "",
    namespace: NAMESPACE,
    // Small, so that the nodes have room for several at a time.
    resources: { cpu: "400m", memory: "512Mi" },
    lease: 20_000,
  };
  testConformance(createKubernetesHarness("kubernetes", options, { image: "glovebox-test/debian:1" }), undefined, {
    concurrent: true,
  });
});
