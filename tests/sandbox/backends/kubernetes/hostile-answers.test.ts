import { expect, test } from "vitest";
import { JOBS } from "../../../../src/sandbox/backends/kubernetes/client/resources.js";
import { failure, json, startScriptedApi } from "../../../support/kubernetes/scripted-api.js";
import { expectRefused } from "../../../support/refused.js";

const place = { namespace: "team", name: "x" };

test.each<[string, unknown]>([
  ["a page that follows itself", { items: [], metadata: { continue: "again" } }],
  ["objects that are none", { items: [7] }],
  ["objects without a name", { items: [{ metadata: {} }] }],
  ["a number of objects", { items: 7 }],
  ["nothing", null],
  ["no bytes at all", undefined],
])("does not believe a list of %s", async (_, answer) => {
  await using api = await startScriptedApi((_request, response) =>
    answer === undefined ? response.end() : json(response, 200, answer as object),
  );
  const listing = api.client().list(JOBS, place, {}, { signal: AbortSignal.timeout(3_000) });
  await expectRefused(listing, "tampered", "jobs");
});

test("does not come back sooner when it is asked to wait for years", async () => {
  await using api = await startScriptedApi((_request, response) =>
    failure(response, 429, "TooManyRequests", "later", { "Retry-After": "9999999999" }),
  );
  await expectRefused(api.client().get(JOBS, place, { timeout: 500 }), "unavailable");
  expect(api.seen.length).toBe(1);
});
