import { join } from "node:path";
import { expect, test } from "vitest";
import { runHarness } from "../../src/harness.js";
import { createLocalSandbox } from "../../src/sandbox/backends/local.js";
import { listSandboxes, removeSandbox } from "../../src/sandbox.js";
import { expectInTime, timed, useLoad } from "./suite.js";

const suite = useLoad(async ({ place }) => {
  await (await createLocalSandbox({ repo: place.repo })).teardown();
});

const CHANGE = "for n in $(seq 300); do echo $n > new-$n; done";

test.each([
  ["a node that goes on without an end", 8_000, "never", [CHANGE, "while :; do sleep 1; done"]],
  ["a node that goes on, in a sandbox that is kept", 8_000, "failed", ["while :; do sleep 1; done"]],
  ["many nodes, after each of which the files are saved", 10_000, "never", Array.from({ length: 30 }, () => CHANGE)],
  ["hardly the time to open a sandbox", 500, "never", ["true"]],
] as const)("a run whose wall is over: %s", async (_, wall, keep, scripts) => {
  const { repo, path } = suite.place;
  const nodes = scripts.map((script, n) => ({ id: `n${n}`, kind: "command" as const, run: ["sh", "-c", script] }));
  const result = await timed(() =>
    runHarness({
      repo,
      intent: "be late",
      sandboxType: "local",
      keep,
      out: join(path, "runs"),
      blueprint: { name: "late", limits: { wall: `${wall}ms` }, nodes },
    }),
  );
  expectInTime(wall, result);
  // Without an error. With one, there was not even the time to decide how it runs.
  if (result.error === undefined)
    expect(result.value).toMatchObject({ status: "limit", limitsHit: [{ limit: "wall" }] });
  const { id, kept } = result.value?.sandbox ?? {};
  if (id === undefined || kept !== true) return;
  await suite.quietly(async () => {
    // The run may have returned while its sandbox was still being closed.
    await expect.poll(async () => (await listSandboxes()).find((each) => each.id === id)?.state).toBe("kept");
    await removeSandbox(id);
  });
});
