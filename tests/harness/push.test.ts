import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type BlueprintSpec, pushRunAgain } from "../../src/harness.js";
import { hangUp } from "../fakes/github.js";
import { setEnv } from "../support/daytona/service.js";
import { createHarnessBench, type HarnessBench } from "../support/harness/bench.js";
import { git } from "../support/scratch.js";

const CHANGE: BlueprintSpec = {
  name: "Change It!",
  nodes: [{ id: "edit", kind: "command", shell: "echo changed > a.txt; echo new > new.txt" }],
};
const FAIL: BlueprintSpec = {
  name: "fail",
  nodes: [{ id: "break", kind: "command", shell: "echo half > a.txt; echo why >&2; exit 3" }],
};

let bench: HarnessBench;
let other: string;
beforeAll(async () => {
  bench = await createHarnessBench();
  git(bench.repo, "push", "--quiet", bench.github.remote, "main:release");
  other = git(bench.repo, "commit-tree", "-m", "other", "-p", "main", "main^{tree}");
  git(bench.repo, "push", "--quiet", bench.github.remote, `${other}:refs/heads/other`);
  bench.github.refuse = (method, _, body) =>
    method === "POST" && body.includes("harness/broken/") ? { status: 500, message: "oops" } : undefined;
  bench.github.trick = (request, response) => {
    const { method, url = "" } = request;
    if (method !== "GET" || !url.includes("/commits/")) return false;
    if (url.includes("swapped")) {
      git(bench.github.remote, "update-ref", "refs/heads/harness/swapped/change-it", other);
    }
    return url.includes("hangs-up") && hangUp(request, response);
  };
});
afterAll(async () => {
  await bench[Symbol.asyncDispose]();
});

const pull = (runId: string) => bench.github.pulls.find(({ head }) => head.startsWith(`harness/${runId}/`));

describe.concurrent("push and pull request", () => {
  test.each([
    ["broken", /^PR creation failed: .*500: oops/],
    ["hangs-up", /^PR creation failed: GitHub cannot be reached/],
  ])("[S4-STATE-pr-failed] a GitHub that %s is a result; the branch is there", async (runId, reason) => {
    const report = await bench.run({ blueprint: CHANGE, push: true, runId });
    expect(report).toMatchObject({ status: "success", exitCode: 4, pushResult: { pushed: true, state: "pr_failed" } });
    expect(report.pushResult?.error).toMatch(reason);
    expect(git(bench.github.remote, "rev-parse", `${report.branch}^{tree}`)).toBe(report.tree);
  });

  test("a run on a repository that got its remote later is pushed there, with a pull request", async () => {
    const repo = join(bench.scratch.path, "remote-later");
    git(bench.scratch.path, "clone", "--quiet", bench.repo, repo);
    git(repo, "remote", "remove", "origin");
    await bench.run({ blueprint: CHANGE, repo, runId: "remote-later" });
    git(repo, "remote", "add", "origin", bench.github.url);
    const result = await pushRunAgain("remote-later", { githubToken: bench.github.env.GITHUB_TOKEN });
    expect(result).toMatchObject({ pushed: true, state: "ok", prUrl: expect.stringMatching(/\/pull\/\d+$/) });
    expect(pull("remote-later")).toMatchObject({ base: "trunk" });
  });

  test("[S4-FORMAT-body] the body says what was changed and how to go on", async () => {
    await bench.run({ blueprint: CHANGE, push: true, runId: "body" });
    const { body = "" } = pull("body") ?? {};
    expect(body).toMatch(/^Blueprint: Change It!\nBranch: harness\/body\/change-it\nRun: body\n/);
    expect(body).toContain("2 files +2 −1");
    expect(body).toContain("glovebox resume body");
  });

  test("a branch that is there already goes on, and so does its pull request", async () => {
    const options = { push: true, branch: "feature", keep: "never" } as const;
    await bench.run({ blueprint: CHANGE, ...options });
    const more: BlueprintSpec = { name: "more", nodes: [{ id: "more", kind: "command", shell: "echo more >> a.txt" }] };
    const report = await bench.run({ blueprint: more, ...options });
    expect(report.pushResult).toMatchObject({ pushed: true, existing: true, state: "ok" });
    expect(bench.github.pulls.filter(({ head }) => head === "feature")).toHaveLength(1);
    expect(git(bench.github.remote, "show", "feature:a.txt")).toBe("changed\nmore");
  });

  test("[S4-TEST-push-not-asked] without push nothing is pushed", async () => {
    const report = await bench.run({ blueprint: CHANGE, runId: "not-asked" });
    expect(report).toMatchObject({ status: "success", exitCode: 0, push: false });
    expect(report.pushResult).toBeUndefined();
    expect(bench.github.requests.filter(({ url }) => url.includes("not-asked"))).toEqual([]);
    expect(git(bench.github.remote, "for-each-ref", "refs/heads/harness/not-asked")).toBe("");
  });

  test("pushOn always: what failed is pushed too, as a draft that says so", async () => {
    const report = await bench.run({ blueprint: FAIL, push: true, pushOn: "always", keep: "never", runId: "always" });
    expect(report).toMatchObject({ status: "failed", exitCode: 1, pushResult: { pushed: true, draft: true } });
    expect(pull("always")).toMatchObject({ draft: true, body: expect.stringContaining("**Incomplete**") });
  });

  test("another base branch, and a draft by request", async () => {
    const report = await bench.run({ blueprint: CHANGE, push: true, base: "release", draft: true, runId: "base" });
    expect(report.pushResult).toMatchObject({ pushed: true, draft: true });
    expect(pull("base")).toMatchObject({ base: "release", draft: true });
  });

  test("the token is in nothing that the run leaves behind, also when the inside prints it", async () => {
    const token = bench.github.env.GITHUB_TOKEN;
    const leak: BlueprintSpec = {
      name: "leak",
      nodes: [{ id: "say", kind: "command", run: ["sh", "-c", `printf %s '${token}' | tee a.txt; echo`] }],
    };
    const report = await bench.run({ blueprint: leak, intent: `use ${token}`, push: true, runId: "leak" });
    const texts = ["events.jsonl", "report.json", "report.md", "report.html", "run.json", "nodes/1-say/stdout.log"];
    for (const name of texts) {
      const text = bench.file(report.runId, name);
      expect(text, name).not.toBe("");
      expect(text, name).not.toContain(token);
    }
    expect(pull("leak")?.title).not.toContain(token);
    expect(readFileSync(join(bench.repo, ".git", "config"), "utf8")).not.toContain(token);
  });

  test("what the remote has is what was reviewed, else no pull request is opened", async () => {
    const report = await bench.run({ blueprint: CHANGE, push: true, runId: "swapped" });
    expect(report.pushResult).toMatchObject({ pushed: true, state: "pr_failed" });
    expect(report.pushResult?.error).toMatch(/was reviewed/);
    expect(pull("swapped")).toBeUndefined();
  });
});

describe("gh", () => {
  let bin: string;
  let restore: () => void;
  const said = (name: string): string => (existsSync(join(bin, name)) ? readFileSync(join(bin, name), "utf8") : "");
  beforeAll(() => {
    bin = join(bench.scratch.path, "bin");
    mkdirSync(bin);
    copyFileSync(fileURLToPath(new URL("../fakes/programs/gh.sh", import.meta.url)), join(bin, "gh"));
    chmodSync(join(bin, "gh"), 0o755);
    writeFileSync(join(bin, "remote"), bench.github.remote);
    restore = setEnv({ PATH: `${bin}:${process.env["PATH"]}` });
  });
  afterAll(() => restore());

  test("is not started unless it is asked for", async () => {
    const report = await bench.run({ blueprint: CHANGE, push: true, runId: "no-gh" });
    expect([report.pushResult?.state, said("args")]).toEqual(["ok", ""]);
  });

  test("opens the pull request when it is, with the token in its environment only", async () => {
    const token = bench.github.env.GITHUB_TOKEN;
    const before = bench.github.pulls.length;
    const report = await bench.run({ blueprint: CHANGE, push: true, prWith: "gh", runId: "by-gh" });
    const prUrl = "https://github.example.org/acme/widgets/pull/7";
    expect(report.pushResult).toMatchObject({ pushed: true, state: "ok", prUrl, draft: true });
    expect(bench.github.pulls).toHaveLength(before);
    const head = "--head harness/by-gh/change-it";
    expect(said("args")).toMatch(new RegExp(`^pr create --repo \\S+/acme/widgets ${head} --base trunk --title`, "m"));
    expect(said("body")).toMatch(/^Blueprint: Change It!\nBranch: harness\/by-gh\/change-it\nRun: by-gh\n/);
    expect(said("args")).not.toContain(token);
    expect(said("env")).toContain(`GH_TOKEN=${token}\n`);
    expect(git(bench.github.remote, "rev-parse", `${report.branch}^{tree}`)).toBe(report.tree);
    const again = await pushRunAgain("by-gh", { githubToken: token });
    expect(again).toMatchObject({ pushed: true, existing: true, prUrl });
  });

  test("that refuses is a result without the token; one that is not there is refused before anything is made", async () => {
    const options = { blueprint: CHANGE, push: true, prWith: "gh" } as const;
    const report = await bench.run({ ...options, runId: "refused" });
    expect(report).toMatchObject({ status: "success", exitCode: 4, pushResult: { pushed: true, state: "pr_failed" } });
    expect(report.pushResult?.error).toMatch(/^PR creation failed: gh: GraphQL: not with /);
    expect(report.pushResult?.error).not.toContain(bench.github.env.GITHUB_TOKEN);
    const without = setEnv({ PATH: "/usr/bin:/bin" });
    try {
      const refusal = { code: "missing_dependency", message: "gh was not found in PATH" };
      await expect(bench.run({ ...options, runId: "without" })).rejects.toMatchObject(refusal);
      expect(existsSync(bench.directoryOf("without"))).toBe(false);
    } finally {
      without();
    }
  });
});
