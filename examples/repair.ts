import { strict as assert } from "node:assert";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  defineBlueprint,
  findRunDirectory,
  formatDuration,
  type Reporter,
  removeRun,
  runHarness,
} from "glovebox/harness";

const repo = await mkdtemp(join(tmpdir(), "glovebox-repair-"));
const git = (...args: string[]): string => execFileSync("git", args, { cwd: repo, encoding: "utf8" }).trim();

/** A small project whose test fails. */
async function breakSomething(): Promise<void> {
  git("init", "--quiet", "--initial-branch=main");
  await writeFile(
    join(repo, "cart.mjs"),
    "export const total = (items) => items.reduce((sum, { price, count }) => sum + price, 0);\n",
  );
  await writeFile(
    join(repo, "cart.test.mjs"),
    `import { strict as assert } from "node:assert";
import { test } from "node:test";
import { total } from "./cart.mjs";

test("two of one thing cost twice as much", () => assert.equal(total([{ price: 3, count: 2 }]), 6));
test("an empty cart costs nothing", () => assert.equal(total([]), 0));
`,
  );
  git("add", "-A");
  git("-c", "user.name=Example", "-c", "user.email=example@example.invalid", "commit", "--quiet", "-m", "a cart");
}

// #region blueprint
const blueprint = defineBlueprint({
  name: "repair",
  nodes: [
    { kind: "command", id: "node", run: ["node", "--version"] },
    {
      kind: "gate",
      id: "green",
      checks: [{ id: "test", run: ["node", "--test", "--test-reporter=tap"] }],
      // A program that stands for an agent: it reads what failed from stdin, and fixes the code.
      onFail: {
        agent: "command",
        command: ["sh", "-c", 'grep -q "twice as much" && sed -i "s/sum + price/sum + price * count/" cart.mjs'],
      },
      protect: ["*.test.mjs"],
    },
    { kind: "commit", id: "save", message: "fix: {{ intent }}" },
  ],
});
// #endregion blueprint

const reporter: Reporter = {
  event(event) {
    if (event.type !== "node.finished") return;
    const { id, status, durationMs, checks } = event.result;
    const told = checks?.map((check) => `${check.id} ${check.status}`).join(", ") ?? "";
    console.log(`  ${status.padEnd(8)} ${id.padEnd(14)} ${formatDuration(durationMs).padStart(6)}  ${told}`);
  },
};

for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));

await breakSomething();
console.log("\nA project whose test fails, and a blueprint that repairs it in a sandbox:\n");

// #region run
const report = await runHarness({
  blueprint,
  repo,
  intent: "two of one thing cost twice as much",
  sandboxType: "local",
  reporter,
});
// #endregion run

assert.equal(report.status, "success", JSON.stringify(report, undefined, 2));
assert.equal(report.nodes.find(({ id }) => id === "green")?.rounds, 1);
const directory = await findRunDirectory(report.runId);
console.log(`\n${(await readFile(directory.at("changes.patch"), "utf8")).replace(/^/gm, "  ").trimEnd()}\n`);
assert.equal(git("status", "--porcelain"), "", "the user's own files are as they were");
assert(existsSync(directory.at("report.html")));

const isAsked = process.argv.includes("--keep");
if (isAsked) console.log(`The report: ${directory.at("report.html")}`);
if (!isAsked) {
  await removeRun(report.runId);
  await rm(repo, { recursive: true });
}
console.log(`Repaired in ${formatDuration(report.totalDurationMs)}; the test is green.`);
