import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { BlueprintSpec } from "../src/harness.js";
import { hangUp } from "./fakes/github.js";
import { createHarnessBench, type HarnessBench } from "./support/harness-bench.js";
import { git } from "./support/scratch.js";

const CHANGE: BlueprintSpec = {
  name: "Change It!",
  nodes: [
    { id: "edit", kind: "command", shell: "echo changed > a.txt; echo new > new.txt" },
    { id: "look", kind: "command", run: ["cat", "a.txt"] },
  ],
};

let bench: HarnessBench;
beforeEach(async () => {
  bench = await createHarnessBench();
});
afterEach(async () => {
  await bench[Symbol.asyncDispose]();
});

describe("push and pull request", () => {
  test("[S4-AC-15] [S4-AC-22] [S4-AC-23] [S4-TEST-push-triggers] [S4-TEST-push-schema] [S4-STATE-ok] the branch is pushed and a pull request opened against the default branch", async () => {
    const report = await bench.run({ blueprint: CHANGE, push: true, intent: "mend\nthe   thing", runId: "one" });
    const branch = "harness/one/change-it";
    expect(report).toMatchObject({
      status: "success",
      exitCode: 0,
      branch,
      pushResult: {
        pushed: true,
        state: "ok",
        draft: false,
        prUrl: `${bench.github.env.GITHUB_SERVER_URL}/acme/widgets/pull/1`,
      },
    });
    expect(report.pushResult?.error).toBeUndefined();
    expect(bench.github.pulls).toMatchObject([
      { title: "[harness] mend the thing", head: branch, base: "trunk", draft: false },
    ]);
    expect(report.tree).toMatch(/^[0-9a-f]{40}$/);
    expect(git(bench.github.remote, "rev-parse", `${branch}^{tree}`)).toBe(report.tree);
    expect(git(bench.github.remote, "show", `${branch}:new.txt`)).toBe("new");
    expect(git(bench.github.remote, "log", "-1", "--format=%s", branch)).toBe("[harness] mend the thing");
  });

  test("[S4-FORMAT-body] the body says blueprint, branch and run, what was changed and how to go on", async () => {
    await bench.run({ blueprint: CHANGE, push: true, runId: "two" });
    const { body = "" } = bench.github.pulls[0] ?? {};
    expect(body).toMatch(/^Blueprint: Change It!\nBranch: harness\/two\/change-it\nRun: two\n/);
    expect(body).toContain("2 files +2 −1");
    expect(body).toContain("glovebox resume two");
  });

  test("[S4-AC-21] [S4-TEST-push-no-token] [S4-STATE-no-token] without a token nothing is sent, and the run is a success", async () => {
    process.env["GITHUB_TOKEN"] = bench.github.env.GITHUB_TOKEN;
    const { githubToken: _, ...options } = { githubToken: "", blueprint: CHANGE, push: true };
    const { runHarness } = await import("../src/harness.js");
    const report = await runHarness({ ...options, repo: bench.repo, intent: "x", sandboxType: "local" });
    expect(report).toMatchObject({ status: "success", exitCode: 4 });
    expect(report.pushResult).toEqual({ pushed: false, error: "GITHUB_TOKEN required for push", state: "no_token" });
    expect(bench.github.requests).toEqual([]);
  });

  test("[S4-AC-16] [S4-TEST-push-failure] [S4-STATE-push-failed] a push that is refused is a result, and the run stays a success", async () => {
    writeFileSync(join(bench.github.remote, "hooks", "pre-receive"), "#!/bin/sh\necho no way >&2\nexit 1\n", {
      mode: 0o755,
    });
    const report = await bench.run({ blueprint: CHANGE, push: true });
    expect(report).toMatchObject({ status: "success", exitCode: 4 });
    expect(report.nodes.map(({ status }) => status)).toEqual(["success", "success"]);
    expect(report.pushResult).toMatchObject({
      pushed: false,
      state: "push_failed",
      error: expect.stringMatching(/^git push failed: .*pre-receive hook declined/),
    });
    expect(report.pushResult?.prUrl).toBeUndefined();
    expect(bench.github.pulls).toEqual([]);
  });

  test.each([
    ["refused", { status: 403, message: "Resource not accessible by token" }, /403: Resource not accessible/],
    ["broken", { status: 500, message: "oops" }, /500: oops/],
  ])("[S4-STATE-pr-failed] a pull request that is %s is a result; the branch is there", async (_, answer, reason) => {
    bench.github.refuse = (method) => (method === "POST" ? answer : undefined);
    const report = await bench.run({ blueprint: CHANGE, push: true, runId: "three" });
    expect(report).toMatchObject({ status: "success", exitCode: 4, pushResult: { pushed: true, state: "pr_failed" } });
    expect(report.pushResult?.error).toMatch(/^PR creation failed: /);
    expect(report.pushResult?.error).toMatch(reason);
    expect(report.pushResult?.prUrl).toBeUndefined();
    expect(git(bench.github.remote, "rev-parse", "harness/three/change-it^{tree}")).toBe(report.tree);
  });

  test("a GitHub that hangs up is a result", async () => {
    bench.github.trick = (request, response) =>
      request.url?.startsWith("/api/") === true ? hangUp(request, response) : false;
    const report = await bench.run({ blueprint: CHANGE, push: true });
    expect(report.pushResult).toMatchObject({
      pushed: true,
      error: expect.stringMatching(/^PR creation failed: GitHub/),
    });
  });

  test("a pull request that is open already is used", async () => {
    await bench.run({ blueprint: CHANGE, push: true, branch: "feature", keep: "never" });
    const more: BlueprintSpec = { name: "more", nodes: [{ id: "more", kind: "command", shell: "echo more >> a.txt" }] };
    const report = await bench.run({ blueprint: more, push: true, branch: "feature" });
    expect(report.pushResult).toMatchObject({ pushed: true, existing: true, state: "ok" });
    expect(report.pushResult?.prUrl).toMatch(/\/pull\/1$/);
    expect(bench.github.pulls).toHaveLength(1);
    expect(git(bench.github.remote, "show", "feature:a.txt")).toBe("changed\nmore");
  });

  test("nothing changed: nothing is pushed", async () => {
    const report = await bench.run({
      blueprint: { name: "idle", expectsChanges: true, nodes: [{ id: "look", kind: "command", run: ["true"] }] },
      push: true,
    });
    expect(report).toMatchObject({ status: "no_changes", exitCode: 6 });
    expect(report.pushResult).toEqual({ pushed: false, state: "no_changes" });
    expect(bench.github.requests).toEqual([]);
  });

  test("[S4-TEST-push-not-asked] without push nothing is pushed", async () => {
    const report = await bench.run({ blueprint: CHANGE });
    expect(report).toMatchObject({ status: "success", exitCode: 0, push: false });
    expect(report.pushResult).toBeUndefined();
    expect(bench.github.requests).toEqual([]);
  });

  const FAIL: BlueprintSpec = {
    name: "fail",
    nodes: [{ id: "break", kind: "command", shell: "echo half > a.txt; echo why >&2; exit 3" }],
  };

  test("a run that failed is not pushed, and its patch is kept", async () => {
    const report = await bench.run({ blueprint: FAIL, push: true, keep: "never" });
    expect(report).toMatchObject({
      status: "failed",
      exitCode: 1,
      pushResult: { pushed: false, state: "not_allowed" },
    });
    expect(bench.github.requests).toEqual([]);
    expect(bench.file(report.runId, "changes.patch")).toContain("+half");
  });

  test("pushOn always: it is, as a draft that says so", async () => {
    const report = await bench.run({ blueprint: FAIL, push: true, pushOn: "always", keep: "never" });
    expect(report).toMatchObject({ status: "failed", exitCode: 1, pushResult: { pushed: true, draft: true } });
    expect(bench.github.pulls[0]).toMatchObject({ draft: true, body: expect.stringContaining("**Incomplete**") });
  });

  test("another base branch, and a draft by request", async () => {
    git(bench.repo, "push", "--quiet", bench.github.remote, "main:release");
    const report = await bench.run({ blueprint: CHANGE, push: true, base: "release", draft: true });
    expect(report.pushResult).toMatchObject({ pushed: true, draft: true });
    expect(bench.github.pulls).toMatchObject([{ base: "release", draft: true }]);
  });

  test("the token is in nothing that the run leaves behind, also when the inside prints it", async () => {
    const token = bench.github.env.GITHUB_TOKEN;
    const leak: BlueprintSpec = {
      name: "leak",
      nodes: [{ id: "say", kind: "command", run: ["sh", "-c", `printf %s '${token}' | tee a.txt; echo`] }],
    };
    const report = await bench.run({ blueprint: leak, intent: `use ${token}`, push: true });
    const texts = ["events.jsonl", "report.json", "report.md", "report.html", "run.json", "nodes/1-say/stdout.log"];
    for (const name of texts) {
      const text = bench.file(report.runId, name);
      expect(text, name).not.toBe("");
      expect(text, name).not.toContain(token);
    }
    expect(bench.github.pulls[0]?.title).not.toContain(token);
    expect(readFileSync(join(bench.repo, ".git", "config"), "utf8")).not.toContain(token);
  });

  test("what the remote has is what was reviewed, else no pull request is opened", async () => {
    const other = git(bench.repo, "commit-tree", "-m", "other", "-p", "main", "main^{tree}");
    git(bench.repo, "push", "--quiet", bench.github.remote, `${other}:refs/heads/other`);
    bench.github.trick = ({ method, url = "" }) => {
      if (method === "GET" && url.includes("/commits/")) {
        git(bench.github.remote, "update-ref", "refs/heads/harness/four/change-it", other);
      }
      return false;
    };
    const report = await bench.run({ blueprint: CHANGE, push: true, runId: "four" });
    expect(report.pushResult).toMatchObject({ pushed: true, state: "pr_failed" });
    expect(report.pushResult?.error).toMatch(/was reviewed/);
    expect(bench.github.pulls).toEqual([]);
  });
});
