import { strict as assert } from "node:assert";
import { execFileSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { prepareRun } from "glovebox/harness";

const repo = await mkdtemp(join(tmpdir(), "glovebox-plan-install-"));
const git = (...args: string[]): string => execFileSync("git", args, { cwd: repo, encoding: "utf8" }).trim();
git("init", "--quiet", "--initial-branch=main");
const packages = { "": { name: "example" }, "node_modules/some-package": { version: "1.0.0" } };
await writeFile(join(repo, "package-lock.json"), JSON.stringify({ lockfileVersion: 3, packages }));
git("add", "-A");
git("-c", "user.name=Example", "-c", "user.email=example@example.invalid", "commit", "--quiet", "-m", "start");

// #region plan
const { plan } = await prepareRun({ blueprint: "test-and-report", repo, intent: "look first", sandboxType: "local" });
// The nodes have no network. Only the installation reaches the registry, which your own npm names.
assert.equal(plan.sandbox.network, "none");
for (const { run, lockfile, reach } of plan.installs ?? []) {
  console.log(`${lockfile}: ${run.slice(0, 2).join(" ")} reaches ${reach.length} hosts that no node does`);
}
// #endregion plan
assert.deepEqual(plan.installs?.[0]?.run.slice(0, 2), ["npm", "ci"]);
await rm(repo, { recursive: true });
