import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { connectCluster } from "../../../../src/sandbox/backends/kubernetes/client/connect.js";
import { CONFIG_MAPS, PODS, type Pod } from "../../../../src/sandbox/backends/kubernetes/client/resources.js";
import { FakeCluster } from "../../../fakes/kubernetes/cluster.js";
import { describeUnless } from "../../../support/describe-unless.js";
import { whyNoFakeCluster } from "../../../support/kubernetes/fake-place.js";
import { type WireSubject, wireCases } from "../../../support/kubernetes/wire-contract.js";
import { refusalOf } from "../../../support/refused.js";
import { createScratch } from "../../../support/scratch.js";

describeUnless(whyNoFakeCluster(), "the wire of our API server", {}, () => {
  const scratch = createScratch();
  let cluster: FakeCluster;
  let subject: WireSubject;
  beforeAll(async () => {
    cluster = await FakeCluster.start(join(scratch.path, "cluster"));
    const client = await connectCluster({ kubeconfig: cluster.kubeconfig, namespace: "default" });
    const container = { name: "main", image: "glovebox-test/debian:1", command: ["sleep", "1000"] };
    const place = { namespace: "default" };
    await client.create(PODS, place, { metadata: { name: "wire" }, spec: { containers: [container] } });
    subject = { client, namespace: "default", pod: "wire" };
  });
  afterAll(async () => {
    subject.client.close();
    await cluster.stop();
    scratch.remove();
  });
  const pod = async (): Promise<Pod> => await subject.client.get<Pod>(PODS, { namespace: "default", name: "wire" });

  it("runs a pod", async () => {
    await expect.poll(async () => (await pod()).status?.phase).toBe("Running");
  });

  for (const { name, ask, answer } of wireCases) {
    it(name, async () => expect(await ask(subject)).toEqual(answer));
  }

  it("refuses a field that older servers drop without a word", async () => {
    const body = { metadata: { name: "odd" }, imutable: true };
    const failure = await refusalOf(subject.client.create(CONFIG_MAPS, { namespace: "default" }, body));
    expect(failure).toMatchObject({
      status: 400,
      message: expect.stringContaining('unknown field "imutable"') as unknown,
    });
  });

  it("wants the rights to get and to create for an exec", async () => {
    for (const verbs of [["get"], ["create"]]) {
      const rules = [{ groups: [""], resources: ["pods", "pods/exec"], verbs }];
      const { kubeconfig } = cluster.addUser(`only-${verbs[0]}`, rules);
      const client = await connectCluster({ kubeconfig, namespace: "default" });
      const ask = wireCases.find(({ name }) => name === "a program and its exit code")?.ask;
      const failure = await refusalOf(ask?.({ ...subject, client }) ?? Promise.resolve());
      expect(failure).toMatchObject({ status: 403, code: "permission_denied" });
    }
  });
});
