import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ConformanceResult, conformanceCases, runConformance } from "../../../../src/testing.js";
import { startFakeDaytona } from "../../../fakes/daytona/server.js";
import { createDaytonaHarness } from "../../../support/daytona/harness.js";
import { type DaytonaService, startDaytonaService } from "../../../support/daytona/service.js";

const WITH_REPOSITORY = ["lifecycle.identity", "lifecycle.teardown-removes", "snapshot", "restore", "changes", "fork"];

/** Runs cases side by side: a service far away is waited for more than it works. */
async function run(
  there: DaytonaService,
  name: string,
  only?: readonly string[],
): Promise<Map<string, ConformanceResult>> {
  const defaults = only === undefined ? {} : { repo: "acme/widgets", branch: "kit", githubToken: there.token };
  const harness = createDaytonaHarness(name, there.service, () => defaults);
  const skips = Object.entries(harness.skips ?? {}).filter(([id]) => only === undefined || only.includes(id));
  // Its snapshot is a commit in the sandbox, which is gone with it.
  if (only !== undefined) skips.push(["snapshot.open", "no machine can start from a commit in another one"]);
  const report = await runConformance(
    { ...harness, skips: Object.fromEntries(skips) },
    { concurrency: 6, ...(only && { only }) },
  );
  for (const { id, status, reason } of report.results)
    if (status === "skipped") console.log(`skipped ${name} ${id}: ${reason}`);
  return new Map(report.results.map((result) => [result.id, result]));
}

describe("conformance of daytona", () => {
  let there: DaytonaService;
  let all: Map<string, ConformanceResult>;
  let withRepository: Map<string, ConformanceResult>;
  beforeAll(async () => {
    there = await startDaytonaService();
    all = await run(there, "daytona");
    withRepository = await run(there, "daytona with a repository", WITH_REPOSITORY);
  }, 600_000);
  afterAll(() => there.close());

  test.for(conformanceCases.map(({ id, title }) => [id, title] as const))("%s: %s", ([id], { skip }) => {
    // What only a sandbox with a repository can do is seen there.
    const found = all.get(id)?.status === "skipped" ? (withRepository.get(id) ?? all.get(id)) : all.get(id);
    const { status, reason = "" } = found ?? { status: "failed", reason: "it was not run" };
    if (status === "skipped") skip(reason);
    expect({ status, reason }).toEqual({ status: "passed", reason: "" });
  });

  test("with a repository", () => {
    expect(withRepository.size).toBeGreaterThan(8);
    expect([...withRepository.values()].filter(({ status }) => status === "failed")).toEqual([]);
    expect(withRepository.get("changes.files")?.status).toBe("passed");
  });

  test("leaves nothing at the service but the snapshots that were asked for", () => {
    const forks = [...there.service.snapshots.keys()].filter((name) => !name.startsWith("glovebox-snapshot-"));
    expect([[...there.service.sandboxes.values()].map(({ name }) => name), forks]).toEqual([[], []]);
  });
});

test("a service is gone with all its machines when it is closed", async () => {
  const service = await startFakeDaytona();
  await service.close();
  await expect(fetch(service.apiUrl)).rejects.toThrow();
});
