import { expect, test } from "vitest";
import { createStyle } from "../../src/cli/terminal.js";
import { summaryOf } from "../../src/cli/verbs/run-view/summary.js";
import type { NodeReport, RunReport } from "../../src/harness.js";

/** The summary of a run that this node ended. */
function summaryWith(node: Partial<NodeReport>): string {
  const nodes = [{ status: "failure", output: "", durationMs: 1, exitCode: 1, ...node }];
  const sandbox = { id: "0123456789abcdef", type: "local", kept: true };
  const report = {
    runId: "r1",
    status: "error",
    totalDurationMs: 1,
    nodes,
    sandbox,
    cost: { usd: null, unpriced: [] },
  };
  return summaryOf(report as unknown as RunReport, "/runs/r1", createStyle(process.stdout, { NO_COLOR: "1" }));
}

test("a command that failed is repeated in the kept sandbox, an install step by the run, which opens the network", () => {
  const command = summaryWith({ id: "test", command: "'npm' 'test'", env: { A: "b" } });
  expect(command).toContain("  again: glovebox exec --id 0123456789abcdef -e A=b -- 'npm' 'test'\n");
  const env = { HTTPS_PROXY: "http://127.0.0.1:3128" };
  const install = summaryWith({ id: "install-npm", command: "'npm' 'ci'", env });
  expect(install).toContain("  again: glovebox resume r1\n");
  expect(install).not.toContain("glovebox exec");
  expect(summaryWith({ id: "install-mine", command: "'make'" })).toContain("-- 'make'\n");
});
