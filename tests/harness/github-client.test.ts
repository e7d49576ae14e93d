import { chmodSync, copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createGhClient } from "../../src/harness/github/gh-client.js";
import { createGitHubClient, type GitHubClient } from "../../src/harness/github/github-client.js";
import { type FakeGitHub, serveGitHub } from "../fakes/github.js";
import { setEnv } from "../support/daytona/service.js";
import { createRepository, createScratch, git, type Scratch } from "../support/scratch.js";

let scratch: Scratch;
let github: FakeGitHub;
let client: GitHubClient;
const REPO = { owner: "acme", name: "widgets" };
const REQUEST = { title: "[harness] x", body: "b", head: "work", base: "trunk", draft: false };

beforeAll(async () => {
  scratch = createScratch();
  github = await serveGitHub(join(scratch.path, "remotes"));
  const repo = createRepository(join(scratch.path, "repo"));
  git(repo, "push", "--quiet", github.remote, "main~1:refs/heads/trunk", "main:refs/heads/work");
  // Another commit by the very name of the branch.
  git(repo, "push", "--quiet", github.remote, "main~1:refs/tags/work");
  client = createGitHubClient(host(), REPO, github.env.GITHUB_TOKEN);
});
afterAll(async () => {
  await github[Symbol.asyncDispose]();
  scratch.remove();
});
afterEach(() => {
  github.refuse = undefined;
});

const host = (): { serverUrl: string; apiUrl: string } => ({
  serverUrl: github.env.GITHUB_SERVER_URL,
  apiUrl: github.env.GITHUB_API_URL,
});

describe("a branch is asked for as a branch", () => {
  const tree = (): string => git(github.remote, "rev-parse", "refs/heads/work^{tree}");

  test("also when a tag has its name", async () => {
    expect(await client.treeOfBranch("work")).toBe(tree());
  });

  test("also by gh", async () => {
    using gh = useGh();
    expect(await gh.client.treeOfBranch("work")).toBe(tree());
  });
});

/** Puts the stand-in for `gh` into PATH. */
function useGh(): { client: GitHubClient; bin: string } & Disposable {
  const bin = join(scratch.path, "bin");
  mkdirSync(bin, { recursive: true });
  copyFileSync(fileURLToPath(new URL("../fakes/programs/gh.sh", import.meta.url)), join(bin, "gh"));
  chmodSync(join(bin, "gh"), 0o755);
  writeFileSync(join(bin, "remote"), github.remote);
  const restore = setEnv({ PATH: `${bin}:${process.env["PATH"]}` });
  return { bin, client: createGhClient(host(), REPO, github.env.GITHUB_TOKEN), [Symbol.dispose]: restore };
}

test("a pull request of a stranger's fork is not taken for ours by gh", async () => {
  using gh = useGh();
  writeFileSync(join(gh.bin, "stranger"), "");
  expect(await gh.client.findPullRequest("work")).toBeUndefined();
  const made = await gh.client.createPullRequest(REQUEST);
  expect(made).toMatchObject({ number: 7, draft: true });
  expect(await gh.client.findPullRequest("work")).toEqual(made);
  await expect(gh.client.createPullRequest(REQUEST)).rejects.toMatchObject({
    message: expect.stringContaining("already exists"),
  });
});

describe("a limit of requests", () => {
  const limited = (times: number, status: number, headers: Record<string, string>, message: string): (() => number) => {
    let asked = 0;
    github.refuse = () => (++asked > times ? undefined : { status, headers, message });
    return () => asked;
  };
  const SECONDARY = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.";

  test.each([403, 429])("is waited for as long as GitHub asks, as %i", async (status) => {
    const asked = limited(1, status, { "Retry-After": "2" }, SECONDARY);
    const started = performance.now();
    expect(await client.defaultBranch()).toBe("trunk");
    expect(performance.now() - started).toBeGreaterThan(2_000);
    expect(asked()).toBe(2);
  });

  test("that ends too late is told at once, with when", async () => {
    const asked = limited(9, 403, { "Retry-After": "3600" }, SECONDARY);
    await expect(client.defaultBranch()).rejects.toMatchObject({
      code: "unavailable",
      retryable: true,
      hint: expect.stringContaining("3600 s"),
    });
    expect(asked()).toBe(1);
  });

  test("of the hour is told by its own headers", async () => {
    const reset = String(Math.ceil(Date.now() / 1_000) + 1800);
    limited(
      9,
      403,
      { "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset },
      "API rate limit exceeded for user ID 1.",
    );
    await expect(client.createPullRequest(REQUEST)).rejects.toMatchObject({
      code: "unavailable",
      hint: expect.stringMatching(/(1[78]\d\d) s/),
    });
    expect(github.pulls).toEqual([]);
  });

  test("is something else than a missing right", async () => {
    limited(9, 403, { "X-RateLimit-Remaining": "4999" }, "Resource not accessible by personal access token");
    await expect(client.defaultBranch()).rejects.toMatchObject({ code: "permission_denied", retryable: false });
  });
});

describe("a refusal says what is wrong with which field", () => {
  test.each([
    ["a base that is no branch", { base: "v1" }, "base: invalid"],
    ["a base that is a commit", { base: "work~1" }, "base: invalid"],
    ["a head that was not pushed", { head: "nothing" }, "head: invalid"],
    ["nothing to merge", { head: "trunk", base: "work" }, "No commits between work and trunk"],
    ["a title that is too long", { title: "x".repeat(300) }, "title is too long"],
    ["a text that is too long", { body: "x".repeat(70_000) }, "body is too long"],
  ])("%s", async (_what, change, reason) => {
    await expect(client.createPullRequest({ ...REQUEST, ...change })).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining(`GitHub answered 422: Validation Failed; ${reason}`),
    });
  });
});

describe("the stand-in is no kinder than GitHub", () => {
  const ask = async (line: string, body?: unknown, more: Record<string, string> = {}): Promise<[number, string]> => {
    const [method = "", path = ""] = line.split(" ");
    const answer = await fetch(`${host().apiUrl}/repos/acme/widgets${path}`, {
      method,
      headers: { Authorization: `Bearer ${github.env.GITHUB_TOKEN}`, "User-Agent": "test", ...more },
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    return [answer.status, ((await answer.json()) as { message?: string }).message ?? ""];
  };

  test.each<[string, string, unknown, Record<string, string>, number]>([
    ["a wrong token", "GET ", undefined, { Authorization: "Bearer wrong" }, 401],
    ["another version", "GET ", undefined, { "X-GitHub-Api-Version": "2019-01-01" }, 400],
    ["another kind of answer", "GET ", undefined, { Accept: "text/html" }, 415],
    ["a body that is no JSON", "POST /pulls", "{", {}, 400],
    ["a request without a title", "POST /pulls", { head: "work", base: "trunk" }, {}, 422],
    ["a key that there is not", "POST /pulls", { ...REQUEST, labels: [] }, {}, 422],
    ["a value of another kind", "POST /pulls", { ...REQUEST, draft: "yes" }, {}, 422],
    ["an empty title", "POST /pulls", { ...REQUEST, title: " " }, {}, 422],
    ["a route that there is not", "PUT /pulls", REQUEST, {}, 404],
    ["a commit that there is not", "GET /commits/none", undefined, {}, 422],
  ])("%s", async (_what, line, body, headers, status) => {
    expect((await ask(line, body, headers))[0]).toBe(status);
  });

  test("a pull request is made once, and found by owner and branch", async () => {
    const made = await client.createPullRequest(REQUEST);
    expect(await client.findPullRequest("work")).toEqual(made);
    expect(await client.findPullRequest("other")).toBeUndefined();
    await expect(client.createPullRequest(REQUEST)).rejects.toMatchObject({
      message: expect.stringContaining("A pull request already exists for acme:work."),
    });
  });
});
