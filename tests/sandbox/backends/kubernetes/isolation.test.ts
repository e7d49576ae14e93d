import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { ensureIsolation } from "../../../../src/sandbox/backends/kubernetes/isolation.js";
import { policyManifest } from "../../../../src/sandbox/backends/kubernetes/manifests/network-policy.js";
import { failure, json, startScriptedApi } from "../../../support/kubernetes/scripted-api.js";
import { expectRefused } from "../../../support/refused.js";

const DAY = 24 * 3_600_000;
const plan = { namespace: "team", image: "busybox", guest: "guest", options: {} };

test("a proof that is on the policy is believed, and asked for once", async () => {
  await using api = await startScriptedApi((_request, response) => json(response, 200, listed(Date.now())));
  const client = api.client();
  await Promise.all([1, 2, 3].map(() => ensureIsolation(client, "none", plan)));
  await ensureIsolation(client, "none", plan);
  expect(api.seen.map(({ method }) => method)).toEqual(["GET"]);
});

test("a caller that gives up fails nobody else who waits for the same proof", async () => {
  const answers: (() => void)[] = [];
  await using api = await startScriptedApi((_request, response) => {
    answers.push(() => json(response, 200, listed(Date.now())));
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

test.each([
  ["is older than a day", -DAY - 1_000],
  ["is from tomorrow", DAY],
])("a proof that %s is not believed", async (_, age) => {
  await using api = await startScriptedApi((request, response) => {
    if (request.method === "POST") failure(response, 403, "Forbidden", "no canary today");
    else json(response, 200, listed(Date.now() + age));
  });
  await expectRefused(ensureIsolation(api.client(), "none", plan), "permission_denied", "no canary today");
});

test("a process that goes on for longer than a proof is believed makes another one", async () => {
  const written = Date.now() - DAY + 1_500;
  await using api = await startScriptedApi((request, response) => {
    if (request.method === "POST") failure(response, 403, "Forbidden", "no canary today");
    else json(response, 200, listed(written));
  });
  const client = api.client();
  await ensureIsolation(client, "none", plan);
  await delay(written + DAY + 100 - Date.now());
  await expectRefused(ensureIsolation(client, "none", plan), "permission_denied", "no canary today");
});

const dns = { to: [{ namespaceSelector: {} }], ports: [{ port: 53, protocol: "UDP" }] };
const internet = { to: [{ ipBlock: { cidr: "0.0.0.0/0", except: ["10.0.0.0/8"] } }] };

test.each([
  ["none", "a way out", { podSelector: {}, policyTypes: ["Egress"], egress: [dns] }],
  ["none", "a way out", { podSelector: { matchLabels: { team: "a" } }, egress: [internet] }],
  ["none", "a way in", { podSelector: { matchExpressions: [{ key: "x", operator: "DoesNotExist" }] }, ingress: [{}] }],
  ["none", "a way in", { podSelector: { matchLabels: { "glovebox/sandbox": "this" } }, ingress: [{}] }],
  ["full", "metadata", { podSelector: {}, policyTypes: ["Egress"], egress: [{}] }],
  ["full", "metadata", { podSelector: {}, egress: [internet] }],
] as const)("with network %s, a policy that opens %s is refused: policies add up", async (network, open, spec) => {
  const other = { metadata: { name: "of-the-team" }, spec };
  await using api = await startScriptedApi((_request, response) =>
    json(response, 200, listed(Date.now(), [other], network)),
  );
  const labelled = { ...plan, options: { podTemplate: { metadata: { labels: { team: "a" } } } } };
  await expectRefused(ensureIsolation(api.client(), network, labelled), "unsupported", "of-the-team", open);
});

test.each([
  ["none", { podSelector: {}, policyTypes: ["Ingress", "Egress"] }],
  ["none", { podSelector: { matchLabels: { team: "b" } }, egress: [internet] }],
  [
    "none",
    { podSelector: { matchExpressions: [{ key: "glovebox/network", operator: "DoesNotExist" }] }, egress: [{}] },
  ],
  ["none", { podSelector: { matchExpressions: [{ key: "team", operator: "NotIn", values: ["a"] }] }, egress: [{}] }],
  ["full", { podSelector: {}, egress: [dns, { to: [{ ipBlock: { cidr: "10.0.0.0/8" } }] }], ingress: [{}] }],
  ["full", { podSelector: {}, egress: [{ to: [{ ipBlock: { cidr: "8.0.0.0/8" } }] }] }],
] as const)("with network %s, one that opens nothing is none of our business", async (network, spec) => {
  const other = { metadata: { name: "of-the-team" }, spec };
  await using api = await startScriptedApi((_request, response) =>
    json(response, 200, listed(Date.now(), [other], network)),
  );
  const labelled = { ...plan, options: { podTemplate: { metadata: { labels: { team: "a" } } } } };
  await ensureIsolation(api.client(), network, labelled);
});

/** Our policy, with a proof of this time for pods that may run anywhere, and others. */
function listed(proven: number, others: readonly object[] = [], network: "none" | "full" = "none"): object {
  const policy = policyManifest(network) as { metadata: object };
  // Its name has the hash of where they run.
  const annotations = { "glovebox/proven-9318536c": new Date(proven).toISOString() };
  return { items: [...others, { ...policy, metadata: { ...policy.metadata, annotations } }] };
}
