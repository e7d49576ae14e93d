import { expect, test } from "vitest";
import { flyCanary } from "../../../../src/sandbox/backends/kubernetes/canary.js";
import { failure, json, startScriptedApi } from "../../../support/kubernetes/scripted-api.js";
import { expectRefused } from "../../../support/refused.js";

test("when one pod of a canary is refused, the others are given up, and all are removed", async () => {
  const events: string[] = [];
  await using api = await startScriptedApi(({ method }, response) => {
    events.push(method);
    if (method !== "POST") json(response, 200, {});
    else if (events.length === 1) response.once("close", () => events.push("given up"));
    else failure(response, 403, "Forbidden", "no second one");
  });
  const plan = { namespace: "team", image: "busybox", guest: "guest", options: {} };
  await expectRefused(flyCanary(api.client(), "none", plan), "permission_denied", "no second one");
  expect(events.filter((event) => event === "DELETE").length).toBe(2);
  // Sooner than the request's own deadline.
  await expect.poll(() => events, { timeout: 10_000 }).toContain("given up");
});
