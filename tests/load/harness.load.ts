import { join } from "node:path";
import { expect, test } from "vitest";
import { type RunReport, runHarness } from "../../src/harness.js";
import { listSandboxes, removeSandbox } from "../../src/sandbox.js";
import type { LoadPlace } from "./place.js";
import { expectInTime, timed, useLoad } from "./suite.js";

/** A whole run, which loads everything that is loaded at its first use: these tests run from sources, whose compilation takes seconds under load. */
const suite = useLoad(async ({ place }) => {
  await run(place, { wall: 60_000, keep: "never", scripts: ["echo changed > new"] });
});

interface Late {
  wall: number;
  keep: "never" | "failed";
  scripts: readonly string[];
}

const CHANGE = "for n in $(seq 300); do echo $n > new-$n; done";

async function run({ repo, path }: LoadPlace, { wall, keep, scripts }: Late): Promise<RunReport> {
  const nodes = scripts.map((script, n) => ({ id: `n${n}`, kind: "command" as const, run: ["sh", "-c", script] }));
  return await runHarness({
    repo,
    intent: "be late",
    sandboxType: "local",
    keep,
    out: join(path, "runs"),
    blueprint: { name: "late", limits: { wall: `${wall}ms` }, nodes },
  });
}

test.each([
  ["a node that goes on without an end", 8_000, "never", [CHANGE, "while :; do sleep 1; done"]],
  ["a node that goes on, in a sandbox that is kept", 8_000, "failed", ["while :; do sleep 1; done"]],
  ["many nodes, after each of which the files are saved", 10_000, "never", Array.from({ length: 30 }, () => CHANGE)],
  ["hardly the time to open a sandbox", 500, "never", ["true"]],
] as const)("a run whose wall is over: %s", async (_, wall, keep, scripts) => {
  const result = await timed(() => run(suite.place, { wall, keep, scripts }));
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
