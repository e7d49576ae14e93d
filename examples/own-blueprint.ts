import { strict as assert } from "node:assert";
import { execFileSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSandbox } from "glovebox";
import { defineBlueprint, needsOf, type RunContext, runBlueprint, sandboxOptionsOf } from "glovebox/harness";

const repo = await mkdtemp(join(tmpdir(), "glovebox-own-blueprint-"));
const git = (...args: string[]): string => execFileSync("git", args, { cwd: repo, encoding: "utf8" }).trim();
git("init", "--quiet", "--initial-branch=main");
await writeFile(join(repo, "total.mjs"), "export const total = (list) => list.reduce((a, b) => a + b, 1);\n");
await writeFile(
  join(repo, "test.mjs"),
  'import { total } from "./total.mjs";\nif (total([1, 2]) !== 3) throw new Error("wrong");\n',
);
git("add", "-A");
git("-c", "user.name=Example", "-c", "user.email=example@example.invalid", "commit", "--quiet", "-m", "start");

// #region define
const blueprint = defineBlueprint({
  name: "repair",
  nodes: [
    // In code a step may be a function; it sees the run and the sandbox.
    {
      kind: "command",
      id: "look",
      exec: async (_run, inside) => ({ output: (await inside.listDirectory()).join(" ") }),
    },
    {
      kind: "gate",
      id: "green",
      checks: [{ id: "test", run: ["node", "test.mjs"] }],
      // Any program that reads a prompt from stdin can be the agent; this one is a line of sed.
      onFail: { agent: "command", command: ["sed", "-i", "s/, 1)/, 0)/", "total.mjs"] },
      protect: ["test.mjs"],
    },
    { kind: "commit", id: "save", message: "fix: {{ intent }}" },
  ],
});
// #endregion define

// #region run
const needs = needsOf(blueprint);
await using sandbox = await openSandbox({
  backend: "local",
  repo,
  branch: "repair",
  ...sandboxOptionsOf(blueprint, needs),
});
const context: RunContext = {
  runId: "example",
  blueprint: blueprint.name,
  intent: "totals are one too high",
  repo,
  branch: "repair",
  workDir: sandbox.workDir,
  sandboxType: sandbox.backend,
  push: false,
  inputs: {},
  env: {},
  results: {},
};
const seen: string[] = [];
const outcome = await runBlueprint(blueprint, { sandbox, context, onEvent: ({ type }) => void seen.push(type) });

assert.equal(outcome.status, "success");
assert.equal(outcome.nodes.find(({ id }) => id === "green")?.rounds, 1);
assert(seen.includes("gate.check"));
// #endregion run

assert.equal((await sandbox.shell("git log -1 --format=%s")).stdout, "fix: totals are one too high\n");
await rm(repo, { recursive: true, force: true });
console.log("a red test, a repair, a green test, a commit");
