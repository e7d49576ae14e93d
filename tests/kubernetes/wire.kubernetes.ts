import { afterAll, beforeAll, expect, it } from "vitest";
import { connectCluster } from "../../src/sandbox/backends/kubernetes/client/connect.js";
import { describeUnless } from "../support/describe-unless.js";
import { testCluster, whyNoTestCluster } from "../support/kubernetes/cluster.js";
import { createNamespace, startPlainPod } from "../support/kubernetes/plain-pod.js";
import { type WireSubject, wireCases } from "../support/kubernetes/wire-contract.js";

const NAMESPACE = `wire-${process.pid}`;

describeUnless(whyNoTestCluster(), "the wire of a real API server", {}, () => {
  let subject: WireSubject;
  let namespace: AsyncDisposable;
  beforeAll(async () => {
    namespace = await createNamespace(NAMESPACE);
    const node = testCluster().nodes[0]?.name ?? "";
    await startPlainPod(NAMESPACE, "wire", { node, script: "sleep 1000" });
    const client = await connectCluster({ kubeconfig: testCluster().kubeconfig, namespace: NAMESPACE });
    subject = { client, namespace: NAMESPACE, pod: "wire" };
  });
  afterAll(async () => {
    subject.client.close();
    await namespace[Symbol.asyncDispose]();
  });
  for (const { name, ask, answer } of wireCases) {
    it(name, async () => expect(await ask(subject)).toEqual(answer));
  }
});
