import { describe, expect, test } from "vitest";
import { gitHubHost, repositoryAt } from "../src/harness/github-host.js";
import { codeBlock, inlineCode } from "../src/harness/markdown.js";
import { commitMessageOf } from "../src/harness/pull-request-text.js";
import { assertRunId, branchOfRun, newRunId, toSlug } from "../src/harness/run-id.js";
import { formatDuration, pullRequestBody, pullRequestTitle, type RunReport, reportMarkdown } from "../src/harness.js";

const REPORT: RunReport = {
  schemaVersion: 1,
  runId: "4f2a91c0",
  blueprint: "bug-fix",
  repo: "acme/widgets",
  intent: "mend it\n@everyone look\n<img src=x>",
  status: "success",
  exitCode: 0,
  nodes: [],
  startedAt: "2026-01-01T00:00:00.000Z",
  totalDurationMs: 61_000,
  tokenUsage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  cost: { usd: null, unpriced: [] },
  limitsHit: [],
  push: true,
  branch: "harness/4f2a91c0/bug-fix",
  warnings: [],
  version: "0.0.0",
};

describe("the title of a pull request", () => {
  test.each([
    ["mend it", "[harness] mend it"],
    ["mend\r\n\r\nthe\tthing\u2028now", "[harness] mend the thing now"],
    ["  x  ", "[harness] x"],
  ])("[S4-FORMAT-title] %j is one line", (intent, title) => {
    expect(pullRequestTitle(intent)).toBe(title);
  });

  test("[S4-FORMAT-title] is cut at 256 characters, never within one", () => {
    const title = pullRequestTitle("🧤".repeat(400));
    expect([...title]).toHaveLength(256);
    expect(title).toBe(`[harness] ${"🧤".repeat(246)}`);
    expect(pullRequestTitle("x".repeat(400))).toBe(`[harness] ${"x".repeat(400)}`.slice(0, 256));
  });
});

describe("the body of a pull request", () => {
  test("[S4-FORMAT-body] begins with the three lines and quotes the intent", () => {
    const body = pullRequestBody(REPORT);
    expect(body).toMatch(
      /^Blueprint: bug-fix\nBranch: harness\/4f2a91c0\/bug-fix\nRun: 4f2a91c0\n\n> mend it\n> @everyone/,
    );
    expect(body).toContain("Took 1m01s.");
  });

  test("has the checks of each gate in a table", () => {
    const check = { id: "a|b`c", status: "failure" as const, durationMs: 1500, output: "" };
    const node = {
      status: "failure" as const,
      output: "",
      durationMs: 1,
      attempt: 1,
      startedAt: "",
      outputTruncated: false,
    };
    const body = pullRequestBody({
      ...REPORT,
      status: "failed",
      nodes: [{ ...node, id: "green", name: "green", kind: "gate", rounds: 2, checks: [check] }],
    });
    expect(body).toContain("| `green` | ``a\\|b`c`` | ✖ failure | 2s | 2 |");
    expect(body).toContain("**Incomplete**");
  });

  test("stays within what GitHub takes", () => {
    const files = Array.from({ length: 5000 }, (_, at) => ({
      path: `${"d/".repeat(50)}${at}`,
      status: "added" as const,
    }));
    const body = pullRequestBody({
      ...REPORT,
      intent: "x".repeat(64_000),
      changes: { files, insertions: 1, deletions: 1 },
    });
    expect(body.length).toBeLessThan(65_536);
  });
});

describe("the message of a commit", () => {
  test("says what was asked for and by which run; what does not fit on its first line stands below", () => {
    const names = { runId: "4f2a91c0", blueprint: "bug-fix" };
    expect(commitMessageOf({ ...names, intent: "mend it" })).toBe(
      "[harness] mend it\n\nBlueprint: bug-fix\nRun: 4f2a91c0\n",
    );
    const [subject = "", ...rest] = commitMessageOf({ ...names, intent: `${"wörd ".repeat(40)}\nand more` }).split(
      "\n",
    );
    expect([...subject]).toHaveLength(100);
    expect(subject).toMatch(/^\[harness\] wörd .*…$/);
    expect(rest.join("\n")).toContain("and more\n\nBlueprint: bug-fix");
  });
});

describe("markup", () => {
  test.each([
    ["a`b", "``a`b``"],
    ["`", "`` ` ``"],
    ["a\nb\u001b[31m", "`a\\nb\\x1b[31m`"],
    ["", "` `"],
  ])("%j is inline code", (text, code) => {
    expect(inlineCode(text)).toBe(code);
  });

  test("no text ends the block of code that it stands in", () => {
    expect(codeBlock("a\n```\nb\n````\n")).toBe("`````\na\n```\nb\n````\n`````\n");
    expect(reportMarkdown(REPORT)).toContain("```text\nmend it\n@everyone look\n<img src=x>\n```");
  });
});

describe("names", () => {
  test("a run has eight hexadecimal digits, and its branch the blueprint's name", () => {
    expect(newRunId()).toMatch(/^[0-9a-f]{8}$/);
    expect(branchOfRun("4f2a91c0", "Bug  Fix: Ünïcode!")).toBe("harness/4f2a91c0/bug-fix-u-ni-code");
    expect(toSlug("修复")).toBe("run");
    expect(toSlug("a".repeat(39) + "-b".repeat(9))).toBe("a".repeat(39));
  });

  test.each(["", "-a", "a/b", "../x", "A", "a".repeat(65), "0123456789abcdef", "a b"])("%j is no run id", (id) => {
    expect(() => assertRunId(id)).toThrow(expect.objectContaining({ code: "invalid_argument" }));
  });

  test.each([
    [340, "340ms"],
    [14_200, "14s"],
    [221_000, "3m41s"],
    [3_720_000, "1h02m"],
  ])("%d ms is %s", (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });
});

describe("where GitHub is", () => {
  test("as GitHub Actions names it, else github.com", () => {
    expect(gitHubHost({})).toEqual({ serverUrl: "https://github.com", apiUrl: "https://api.github.com" });
    expect(gitHubHost({ GITHUB_SERVER_URL: "https://git.example.org/" })).toEqual({
      serverUrl: "https://git.example.org",
      apiUrl: "https://git.example.org/api/v3",
    });
  });

  test.each(["http://git.example.org", "git.example.org", "https://user:pw@git.example.org", "file:///x"])(
    "no token is sent to %s",
    (url) => {
      expect(() => gitHubHost({ GITHUB_SERVER_URL: url })).toThrow(/a token is sent to https only/);
      expect(() => gitHubHost({ GITHUB_API_URL: url })).toThrow(/a token is sent to https only/);
    },
  );

  const host = gitHubHost({ GITHUB_SERVER_URL: "https://git.example.org" });
  test.each([
    ["acme/widgets", { owner: "acme", name: "widgets" }],
    ["https://git.example.org/acme/widgets.git", { owner: "acme", name: "widgets" }],
    ["git@git.example.org:acme/widgets.git", { owner: "acme", name: "widgets" }],
    ["ssh://git@git.example.org/acme/widgets", { owner: "acme", name: "widgets" }],
    ["https://elsewhere.example.org/acme/widgets", undefined],
    ["https://github.com/acme/widgets", undefined],
    ["git@elsewhere.example.org:acme/widgets.git", undefined],
    ["https://git.example.org/a/b/c", undefined],
    ["/srv/repo", undefined],
  ])("%s", (reference, found) => {
    expect(repositoryAt(host, reference)).toEqual(found);
  });
});
