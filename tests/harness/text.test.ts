import { describe, expect, test } from "vitest";
import { gitHubHost, repositoryAt } from "../../src/harness/github/github-host.js";
import { commitMessageOf } from "../../src/harness/github/pull-request-text.js";
import { codeBlock, inlineCode } from "../../src/harness/report/markdown.js";
import { reportHtml } from "../../src/harness/report/report-html.js";
import { assertRunId, branchOfRun, newRunId, toSlug } from "../../src/harness/store/run-id.js";
import {
  formatDuration,
  pullRequestBody,
  pullRequestTitle,
  type RunReport,
  reportMarkdown,
} from "../../src/harness.js";

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
      /^Blueprint: bug-fix\nBranch: harness\/4f2a91c0\/bug-fix\nRun: 4f2a91c0\n\n> ```text\n> mend it\n> @everyone/,
    );
    expect(body).toContain("Took 1m01s.");
  });

  test("shows the intent as code, so that nothing in it is a mention, a reference or markup", () => {
    const intent = "closes #12\n\n```\n@user\n<!-- \u202e -->\r\n\u2028x\u001b[31m";
    expect(pullRequestBody({ ...REPORT, intent })).toContain(
      "\n\n> ````text\n> closes #12\n>\n> ```\n> @user\n> <!-- \\u202e -->\n>\n> x\\x1b[31m\n> ````\n\n",
    );
  });

  test("names what is no plain name as code", () => {
    const body = pullRequestBody({ ...REPORT, blueprint: "@user fix", branch: "fixes/#12" });
    expect(body).toMatch(/^Blueprint: `@user fix`\nBranch: `fixes\/#12`\nRun: 4f2a91c0\n/);
    expect(pullRequestBody({ ...REPORT, blueprint: "Fix It, ünïcode!" })).toMatch(/^Blueprint: Fix It, ünïcode!\n/);
    expect(pullRequestBody({ ...REPORT, blueprint: "closes GH-7" })).toMatch(/^Blueprint: `closes GH-7`\n/);
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

  test("is cut between lines: a name that lost the end of its code would be a mention", () => {
    const path = `${"d/".repeat(1_000)}@org closes #12 `.repeat(2);
    const files = Array.from({ length: 40 }, () => ({ path, status: "added" as const }));
    const body = pullRequestBody({ ...REPORT, changes: { files, insertions: 1, deletions: 1 } });
    const names = body.split("\n").filter((line) => line.includes("@org"));
    expect(names.length).toBeGreaterThan(5);
    for (const line of names) expect(line).toMatch(/^- added: `[^`]*`$/);
    expect(body).toMatch(/\n\n…\n$/);
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
    // What comes after a long intent is still there, and outside of its block.
    expect(body).toMatch(/x…\n> ```\n\nChanges: /);
  });
});

describe("what GitHub acts on in a title or a commit", () => {
  test.each([
    ["@user and @org/team", "@ user and @ org/team"],
    ["mail user@example.org, a@2", "mail user@example.org, a@2"],
    ["(@user) x@ @", "(@ user) x@ @"],
    ["closes #12, org/name#3, GH-4 and gh-5", "closes # 12, org/name# 3, GH- 4 and gh- 5"],
    ["C# 8 and #x", "C# 8 and #x"],
    ["fixes https://github.com/o/n/issues/7", "fixes https://github.com/o/n/issues/ 7"],
    ["see https://git.example.org/o/n/pull/7/files", "see https://git.example.org/o/n/pull/ 7/files"],
    ["[skip ci] [CI skip] [no ci] [skip actions]", "[ skip ci] [ CI skip] [ no ci] [ skip actions]"],
    ["a\u202eb\u200bc\u0007", "a\\u202eb\\u200bc"],
  ])("%j stays readable and is inert", (intent, shown) => {
    const names = { runId: "4f2a91c0", blueprint: "bug-fix" };
    expect(pullRequestTitle(intent)).toBe(`[harness] ${shown}`);
    expect(commitMessageOf({ ...names, intent }).split("\n")[0]).toBe(`[harness] ${shown}`);
    const long = commitMessageOf({ ...names, intent: `first\n${intent}\nlast` });
    expect(long.split("\n").at(3)).toBe(shown.replace(/c$/, intent.endsWith("\u0007") ? "c\\x07" : "c"));
  });

  test("no line of the intent is a trailer, and neither is a name", () => {
    const names = { runId: "4f2a91c0", blueprint: "x\nCo-authored-by: A <a@example.org> @user" };
    const message = commitMessageOf({ ...names, intent: "first\n\nSigned-off-by: A <a@example.org>" });
    expect(message.split("\n\n").at(-1)).toBe(
      "Blueprint: x\\nCo-authored-by: A <a@example.org> @ user\nRun: 4f2a91c0\n",
    );
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

describe("[N-TERM-01] a report", () => {
  const HOSTILE = "\u001b]0;x\u0007\u001b[2J\u009b31m\u202e\u2066\u200b\u2028\r\b\u0000\ufeff";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
  const ACTIVE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/;
  const node = {
    name: HOSTILE,
    kind: "command" as const,
    status: "failure" as const,
    output: `${HOSTILE}\n\`\`\`\n${HOSTILE}`,
    durationMs: 1,
    attempt: 1,
    startedAt: REPORT.startedAt,
    outputTruncated: false,
    command: HOSTILE,
    reason: HOSTILE,
    error: { code: "internal" as const, message: HOSTILE },
  };
  const hostile: RunReport = {
    ...REPORT,
    status: "failed",
    blueprint: HOSTILE,
    repo: HOSTILE,
    intent: HOSTILE,
    branch: HOSTILE,
    baseCommit: HOSTILE,
    warnings: [HOSTILE],
    error: { code: "internal", message: HOSTILE, hint: HOSTILE },
    sandbox: { id: HOSTILE, type: HOSTILE, kept: true },
    pushResult: { pushed: false, prUrl: `https://example.org/${HOSTILE}`, error: HOSTILE, state: "pr_failed" },
    changes: { files: [{ path: HOSTILE, status: "added" }], insertions: 1, deletions: 0 },
    nodes: [{ ...node, id: HOSTILE, children: [{ ...node, id: HOSTILE }] }],
  } as RunReport;

  test.each([
    ["report.md", () => reportMarkdown(hostile)],
    ["report.html", () => reportHtml(hostile, `diff --git a/x b/x\n+${HOSTILE}\n`)],
    ["the body of a pull request", () => pullRequestBody(hostile)],
    ["the title of a pull request", () => pullRequestTitle(HOSTILE)],
    ["the message of a commit", () => commitMessageOf({ ...hostile, intent: `a\n${HOSTILE}` })],
  ])("shows what would drive a terminal or turn text around: %s", (_what, write) => {
    const text = write();
    expect(ACTIVE.exec(text)).toBeNull();
    expect(text).toContain("\\u202e");
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
