import { strict as assert } from "node:assert";
import { defineBlueprint, runHarness } from "glovebox/harness";

// A repository on GitHub that you can push to, as owner/name.
const repo = process.env["GLOVEBOX_EXAMPLE_REPO"];
const githubToken = process.env["GITHUB_TOKEN"];
if (repo === undefined || githubToken === undefined) {
  console.log("not run: set GLOVEBOX_EXAMPLE_REPO to owner/name, and GITHUB_TOKEN");
  process.exit();
}

// #region run
const blueprint = defineBlueprint({
  name: "add-licence-headers",
  expectsChanges: true,
  nodes: [
    { kind: "command", id: "edit", shell: "sed -i '1i Copyright Acme' *.txt" },
    { kind: "gate", id: "check", checks: [{ id: "first-line", shell: "head -qn1 *.txt | grep Copyright" }] },
    { kind: "commit", id: "save", message: "Add licence headers" },
  ],
});

const report = await runHarness({ blueprint, repo, intent: "Add licence headers", push: true, githubToken });
console.log(report.status, report.pushResult?.prUrl);
// #endregion run

assert.equal(report.status, "success", report.error?.message);
assert.equal(report.pushResult?.state, "ok", report.pushResult?.error);
console.log("changed, checked, pushed, asked");
