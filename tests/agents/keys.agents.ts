import { afterAll, beforeAll, expect, test } from "vitest";
import { DEBIAN, useEngine, whyNoDocker } from "../support/docker/engine.js";
import { SET_UP_LIMIT } from "../support/run/set-up-limit.js";
import { type AgentBench, createAgentBench, whyNoAgent } from "./agent-bench.js";
import { expectKeyless, KEYLESS } from "./keyless.js";
import { say } from "./stage.js";

let bench: AgentBench;
beforeAll(async () => {
  bench = await createAgentBench();
});
afterAll(async () => {
  await bench?.[Symbol.asyncDispose]();
});

for (const keyless of KEYLESS) {
  test(`the real ${keyless.program} works with no key inside`, async ({ skip }) => {
    const reason = whyNoAgent(keyless.program);
    if (reason !== undefined) return skip(reason);
    await expectKeyless(bench, keyless, { runId: `keyless-${keyless.program}` });
  });

  test(`the real ${keyless.program} works with no key inside a container`, { timeout: SET_UP_LIMIT }, async ({
    skip,
  }) => {
    const reason = whyNoAgent(keyless.program) ?? whyNoDocker(DEBIAN);
    if (reason !== undefined) return skip(reason);
    await useEngine(DEBIAN);
    await expectKeyless(bench, keyless, {
      runId: `keyless-docker-${keyless.program}`,
      sandboxType: "docker",
      sandbox: { ...bench.sandbox, image: DEBIAN, docker: { unsafe: { mounts: true } } },
    });
  });
}

test("Claude Code has the token of a gateway where that wants it", async ({ skip }) => {
  const reason = whyNoAgent("claude");
  if (reason !== undefined) return skip(reason);
  await using gateway = await bench.openGateway();
  gateway.model.play([say("it is done")]);
  const report = await bench.run(
    gateway,
    "auth-token",
    [{ id: "work", kind: "agent", agent: "claude-code", model: "claude-sonnet-4-5", prompt: "say it" }],
    { env: { ANTHROPIC_BASE_URL: gateway.url }, secretSource: { ANTHROPIC_AUTH_TOKEN: "token-of-the-gateway" } },
  );
  expect(report.nodes[0]).toMatchObject({ status: "success", output: "it is done" });
  expect(gateway.model.requests.map(({ auth }) => auth)).toEqual([{ authorization: "Bearer token-of-the-gateway" }]);
  expect(gateway.model.faults).toEqual([]);
});
