import { strict as assert } from "node:assert";
import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { listSandboxes, openSandbox, type Sandbox } from "glovebox";

const BROKEN = "export const total = (prices) => prices.reduce((sum, price) => sum - price, 0);\n";
const TEST = `import { equal } from "node:assert/strict";
import { total } from "./total.mjs";
equal(total([1, 2, 3]), 6);
`;

/** Stands for three agents: one is wrong, one is right but slow, one is right. */
const ATTEMPTS: Readonly<Record<string, string>> = {
  "wrong operator": "sed -i 's/sum - price/sum * price/' total.mjs",
  "slow rewrite": "sleep 600; sed -i 's/sum - price/price + sum/' total.mjs",
  "right operator": "sed -i 's/sum - price/sum + price/' total.mjs",
};

const repo = await mkdtemp(join(tmpdir(), "glovebox-race-"));
const git = (...args: string[]): string => execFileSync("git", args, { cwd: repo, encoding: "utf8" });
git("init", "--quiet", "--initial-branch=main");
await writeFile(join(repo, "total.mjs"), BROKEN);
await writeFile(join(repo, "total.test.mjs"), TEST);
git("add", "-A");
git("-c", "user.name=Example", "-c", "user.email=example@example.invalid", "commit", "--quiet", "-m", "a failing test");

// #region race
await using origin = await openSandbox({ backend: "local", repo, branch: "fix-total", workspace: "overlay" });
const runTest = (sandbox: Sandbox) => sandbox.exec({ argv: ["node", "total.test.mjs"], timeout: 60_000 });
assert.notEqual((await runTest(origin)).exitCode, 0, "the test fails at first");

const forks = await origin.fork({ count: Object.keys(ATTEMPTS).length });
const race = Object.entries(ATTEMPTS).map(async ([name, script], lane) => {
  const fork = forks[lane];
  assert(fork !== undefined);
  await fork.shell(script);
  const { exitCode } = await runTest(fork);
  if (exitCode !== 0) throw new Error(`${name}: still red`);
  return { name, fork };
});

const winner = await Promise.any(race);
// Whatever the others are still doing ends here, and their files go.
await Promise.all(forks.filter((fork) => fork !== winner.fork).map((fork) => fork.teardown()));
const { patch, files } = await winner.fork.changes();
// #endregion race

assert.equal(winner.name, "right operator");
assert.deepEqual(files, [{ path: "total.mjs", status: "modified" }]);
const settled = await Promise.allSettled(race);
assert.equal(settled.filter(({ status }) => status === "fulfilled").length, 1, "one is green, the slow one was ended");

// #region apply
// The patch is data until you apply it: look at it, and at what it touches, before you run what it changed.
console.log(patch);
execFileSync("git", ["apply", "-"], { cwd: repo, input: patch });
await winner.fork.teardown();
// #endregion apply

assert.equal(await readFile(join(repo, "total.mjs"), "utf8"), BROKEN.replace("sum - price", "sum + price"));
assert.equal(git("status", "--porcelain").trim(), "M total.mjs");
await origin.teardown();
const ours = new Set([origin.id, ...forks.map(({ id }) => id)]);
assert(!(await listSandboxes()).some(({ id }) => ours.has(id)), "no sandbox is left");
assert.equal(git("for-each-ref", "--format=%(refname:short)", "refs/heads").trim(), "main", "nor a branch");
await rm(repo, { recursive: true });
console.log(`${winner.name} was green first; ${forks.length - 1} others were torn down`);
