import { expect, test } from "vitest";
import { ensureIsolation } from "../../../../src/sandbox/backends/kubernetes/isolation.js";
import { policyManifest } from "../../../../src/sandbox/backends/kubernetes/manifests/network-policy.js";
import { json, startScriptedApi } from "../../../support/kubernetes/scripted-api.js";
import { expectRefused } from "../../../support/refused.js";

const plan = { namespace: "team", image: "busybox", guest: "guest", options: {} };

test("a proof that is on the policy is believed, and asked for once", async () => {
  const policy = policyManifest("none") as { metadata: object };
  await using api = await startScriptedApi((_request, response) => {
    json(response, 200, { ...policy, metadata: { ...policy.metadata, annotations: proofs() } });
  });
  const client = api.client();
  await Promise.all([1, 2, 3].map(() => ensureIsolation(client, "none", plan)));
  await ensureIsolation(client, "none", plan);
  expect(api.seen.map(({ method }) => method)).toEqual(["GET"]);
});

test("a caller that gives up fails nobody else who waits for the same proof", async () => {
  const policy = policyManifest("none") as { metadata: object };
  const answers: (() => void)[] = [];
  const annotations = proofs();
  await using api = await startScriptedApi((_request, response) => {
    answers.push(() => json(response, 200, { ...policy, metadata: { ...policy.metadata, annotations } }));
    if (answers.length > 1) answers.at(-1)?.();
  });
  const client = api.client();
  const aborter = new AbortController();
  const first = ensureIsolation(client, "none", plan, { signal: aborter.signal });
  const second = ensureIsolation(client, "none", plan);
  await expect.poll(() => answers.length).toBe(1);
  aborter.abort();
  await expectRefused(first, "aborted");
  await second;
  expect(api.seen.length).toBe(2);
});

/** A proof for pods that may run anywhere; its name has the hash of where they run. */
function proofs(): object {
  return { "glovebox/proven-9318536c": new Date().toISOString() };
}
