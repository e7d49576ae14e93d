import { expect, test } from "vitest";
import type { KubernetesPlan } from "../../../../src/sandbox/backends/kubernetes/plan.js";
import { joinPod } from "../../../../src/sandbox/backends/kubernetes/start-pod.js";
import { json, startScriptedApi } from "../../../support/kubernetes/scripted-api.js";
import { expectRefused } from "../../../support/refused.js";

const running = {
  metadata: { name: "job-2", uid: "second", resourceVersion: "5" },
  spec: { nodeName: "node-1" },
  status: { phase: "Running", containerStatuses: [{ name: "sandbox", state: { running: {} } }] },
};

test("a kept sandbox is not opened in the pod that its Job has made after the first one was deleted", async () => {
  await using api = await startScriptedApi((_request, response) =>
    json(response, 200, { items: [running], metadata: { resourceVersion: "5" } }),
  );
  const plan = { pod: { name: "job" }, podUid: "first", lease: 10_000 } as KubernetesPlan;
  api.onUpgrade = (_request, socket) => void socket.destroy();
  const joining = joinPod(api.client(), plan, { signal: AbortSignal.timeout(5_000), onWait: () => undefined });
  await expectRefused(joining, "backend_lost", "replaced");
  expect(api.seen.map(({ method }) => method)).not.toContain("UPGRADE");
});
