import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { BlueprintSpec, HarnessOptions, RunReport } from "../src/harness.js";
import { runHarness } from "../src/harness.js";
import { listSandboxes } from "../src/sandbox.js";
import { type FakeDaytona, startFakeDaytona } from "./fakes/daytona-server.js";
import { createHarnessBench, type HarnessBench } from "./support/harness-bench.js";
import { git } from "./support/scratch.js";

const CHANGE: BlueprintSpec = {
  name: "change",
  nodes: [
    { id: "edit", kind: "command", shell: "echo changed > a.txt; echo new > new.txt" },
    { id: "look", kind: "command", run: ["cat", "a.txt"] },
  ],
};

let bench: HarnessBench;
let service: FakeDaytona;
beforeAll(async () => {
  bench = await createHarnessBench();
  service = await startFakeDaytona();
});
afterAll(async () => {
  await service.close();
  await bench[Symbol.asyncDispose]();
});

function run(
  options: Partial<HarnessOptions> & Pick<HarnessOptions, "blueprint" | "runId">,
  token?: string,
): Promise<RunReport> {
  return runHarness({
    ...{ repo: "acme/widgets", intent: "mend it", sandboxType: "daytona", out: join(bench.scratch.path, "runs") },
    daytona: { apiUrl: service.apiUrl, apiKey: service.apiKey },
    ...(token !== undefined && { githubToken: token }),
    ...options,
  });
}

describe("runs at Daytona", () => {
  test("[S4-AC-15] [S4-AC-23] a run is pushed by the service's git, and a pull request opened", async () => {
    const report = await run({ blueprint: CHANGE, runId: "daytona-one", push: true }, bench.github.env.GITHUB_TOKEN);
    expect([report.error, report.pushResult?.error]).toEqual([undefined, undefined]);
    const branch = "harness/daytona-one/change";
    expect(report).toMatchObject({ status: "success", exitCode: 0, branch });
    expect(report.pushResult).toMatchObject({ pushed: true, state: "ok", prUrl: expect.stringMatching(/\/pull\/1$/) });
    expect(bench.github.pulls).toMatchObject([{ title: "[harness] mend it", head: branch, base: "trunk" }]);
    expect(git(bench.github.remote, "show", `${branch}:new.txt`)).toBe("new");
    expect(service.requests.filter((line) => line.endsWith("/git/push"))).toHaveLength(1);
    expect([service.sandboxes.size, await listSandboxes()]).toEqual([0, []]);
  });

  test("[S4-AC-16] [S4-AC-21] without a token, or with one that is refused, the run is a success and nothing is pushed", async () => {
    const pair = Buffer.from(`git:${bench.github.env.GITHUB_TOKEN}`).toString("base64");
    // A public repository: everybody may read it.
    bench.github.trick = (request) => {
      if (/upload-pack/.test(request.url ?? "")) request.headers.authorization = `Basic ${pair}`;
      return false;
    };
    const blueprint = CHANGE;
    const without = await run({ blueprint, runId: "daytona-two", push: true });
    expect([without.status, without.exitCode, without.pushResult]).toEqual([
      "success",
      4,
      { pushed: false, error: "GITHUB_TOKEN required for push", state: "no_token" },
    ]);
    const wrong = "ghp_wrongwrongwrongwrong";
    const refused = await run({ blueprint, runId: "daytona-three", push: true }, wrong);
    expect(refused).toMatchObject({
      ...{ status: "success", exitCode: 4 },
      pushResult: { pushed: false, state: "push_failed", error: expect.stringMatching(/^git push failed: /) },
    });
    expect(JSON.stringify(refused)).not.toContain(wrong);
    expect(bench.github.pulls).toHaveLength(1);
  });

  test("a machine that is lost under a node is the end of the run, and not of the program", async () => {
    const lose: BlueprintSpec = {
      name: "lose",
      nodes: [
        { id: "edit", kind: "command", shell: "echo half > a.txt" },
        { id: "wait", kind: "command", shell: "sleep 60" },
      ],
    };
    const report = await run({
      ...{ blueprint: lose, runId: "daytona-four", push: true, githubToken: bench.github.env.GITHUB_TOKEN },
      reporter: {
        event: (event) => {
          if (event.type !== "node.started" || event.nodeId !== "wait") return;
          const { id } = service.entry();
          void fetch(`${service.apiUrl}/sandbox/${id}`, {
            method: "DELETE",
            headers: { Authorization: `Bearer ${service.apiKey}` },
          });
        },
      },
    });
    expect(report).toMatchObject({ status: "error", error: { code: "backend_lost" } });
    // It was to be kept, being a failure, and there is nothing to keep.
    expect(report.pushResult?.pushed ?? false).toBe(false);
    expect(bench.github.pulls).toHaveLength(1);
    expect([service.sandboxes.size, await listSandboxes()]).toEqual([0, []]);
  });
});
