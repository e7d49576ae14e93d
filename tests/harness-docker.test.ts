import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type BlueprintSpec, resumeRun } from "../src/harness.js";
import { BUSYBOX, useEngine, whyNoDocker } from "./support/docker-engine.js";
import { createHarnessBench, type HarnessBench } from "./support/harness-bench.js";
import { git } from "./support/scratch.js";

const reason = whyNoDocker(BUSYBOX);

const repair = (fix: string): BlueprintSpec => ({
  name: "repair",
  sandbox: { image: BUSYBOX },
  nodes: [
    { id: "look", kind: "command", run: ["cat", "a.txt"] },
    {
      id: "green",
      kind: "gate",
      checks: [{ id: "test", shell: "grep -q good a.txt" }],
      onFail: { agent: "command", command: ["sh", "-c", `cat > /dev/null; ${fix}`] },
    },
  ],
});

if (reason === undefined) {
  let bench: HarnessBench;
  beforeAll(async () => {
    await useEngine(BUSYBOX);
    bench = await createHarnessBench();
  });
  afterAll(async () => {
    await bench?.[Symbol.asyncDispose]();
  });

  describe("runs in a container", () => {
    test("[S4-AC-15] a gate that recovers is pushed, the tree that was reviewed and no other", async () => {
      const report = await bench.run({ blueprint: repair("echo good > a.txt"), sandboxType: "docker", push: true });
      expect(report.error).toBeUndefined();
      expect(report).toMatchObject({ status: "success", exitCode: 0, pushResult: { pushed: true, state: "ok" } });
      expect(report.nodes[1]).toMatchObject({ status: "success", rounds: 1 });
      expect(git(bench.github.remote, "show", `${report.branch}:a.txt`)).toBe("good");
      expect(report.tree).toBe(git(bench.github.remote, "rev-parse", `${report.branch}^{tree}`));
    });

    test("one that does not leaves the patch, and goes on with the files as they were", async () => {
      const report = await bench.run({
        blueprint: repair("echo x >> b.txt"),
        sandboxType: "docker",
        keep: "never",
        push: true,
      });
      expect(report).toMatchObject({ status: "failed", exitCode: 1, pushResult: { state: "not_allowed" } });
      expect(bench.file(report.runId, "changes.patch").match(/^\+x$/gm)).toHaveLength(2);
      const again = await resumeRun({ runId: report.runId });
      expect(again).toMatchObject({ status: "failed", resumedFrom: "green" });
      expect(bench.file(report.runId, "changes.patch").match(/^\+x$/gm)).toHaveLength(4);
    });
  });
} else {
  describe("runs in a container", () => test("all of it", ({ skip }) => skip(reason)));
}
