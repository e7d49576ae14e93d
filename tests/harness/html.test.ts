import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type NodeReport, type RunReport, reportHtml } from "../../src/harness.js";
import { describeUnless } from "../support/describe-unless.js";
import { createScratch, type Scratch } from "../support/scratch.js";

const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find((path) => existsSync(path));

/** Everything that could end the element, the attribute or the document that it stands in. */
const EVIL = [
  "</pre></div></details></main></body></html>",
  "<script>window.broken = 1; document.title = 'owned'</script>",
  '"><img src=x onerror="window.broken = 1">',
  "' onmouseover='window.broken=1' x='",
  "</style></title><svg onload=window.broken=1>",
  "<!-- <![CDATA[ ]]> -->",
  "&lt;script&gt;&#60;b&#62;",
  "javascript:window.broken=1",
  "\u001b[31m\u202e\u0000\u2028",
  "<meta http-equiv=refresh content='0;url=https://example.org'>",
].join("\n");

const node = (id: string, more: Partial<NodeReport> = {}): NodeReport => ({
  id,
  name: id,
  kind: "command",
  status: "success",
  output: EVIL,
  durationMs: 400,
  attempt: 1,
  startedAt: "2026-01-01T00:00:00.100Z",
  outputTruncated: false,
  ...more,
});

const REPORT: RunReport = {
  schemaVersion: 1,
  runId: EVIL,
  blueprint: EVIL,
  repo: EVIL,
  intent: EVIL,
  status: "failed",
  exitCode: 1,
  nodes: [
    node("first", { command: EVIL, outputTruncated: true, stdoutPath: EVIL }),
    node(EVIL, {
      kind: "gate",
      status: "failure",
      reason: EVIL,
      error: { code: EVIL, message: EVIL, retryable: false },
      checks: [{ id: EVIL, status: "failure", durationMs: 5, output: EVIL }],
      children: [node("fix", { kind: "agent", agent: { name: EVIL, model: EVIL, costUsd: null } })],
    }),
  ],
  startedAt: "2026-01-01T00:00:00.000Z",
  totalDurationMs: 1000,
  tokenUsage: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0 },
  cost: { usd: null, unpriced: [EVIL] },
  limitsHit: [],
  push: true,
  branch: EVIL,
  tree: EVIL,
  changes: { files: [{ path: EVIL, status: "added" }], insertions: 1, deletions: 0 },
  pushResult: { pushed: true, prUrl: "javascript:window.broken=1", error: EVIL },
  error: { code: "x", message: EVIL, retryable: false, hint: EVIL },
  warnings: [EVIL],
  version: EVIL,
};
const PATCH = `diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+${EVIL.replaceAll("\n", "\n+")}\n`;

describeUnless(
  CHROMIUM === undefined ? "not run: there is no chromium (apt-get install chromium)" : undefined,
  "report.html in a browser",
  {},
  () => {
    let scratch: Scratch;
    let browser: Browser;
    let page: Page;
    const requests: string[] = [];
    const dialogs: string[] = [];
    beforeAll(async () => {
      const { chromium } = await import("playwright-core");
      scratch = createScratch();
      const path = join(scratch.path, "report.html");
      writeFileSync(path, reportHtml(REPORT, PATCH));
      browser = await chromium.launch({ executablePath: CHROMIUM ?? "", args: ["--no-sandbox", "--disable-gpu"] });
      page = await browser.newPage();
      page.on("request", (request) => requests.push(request.url()));
      page.on("console", (message) => dialogs.push(message.text()));
      await page.goto(`file://${path}`);
    });
    afterAll(async () => {
      await browser?.close();
      scratch?.remove();
    });

    test("nothing of what it shows becomes a part of it", async () => {
      for (const summary of await page.locator("summary").all()) await summary.hover();
      expect(await page.evaluate("window.broken")).toBeUndefined();
      expect(await page.locator("script, img, svg, iframe, object, form, input, link").count()).toBe(0);
      expect(await page.locator("meta").count()).toBe(4);
      expect(await page.locator("main").count()).toBe(1);
      expect(await page.locator("body > main > footer").count()).toBe(1);
      expect(await page.locator("a").count()).toBe(0);
      expect(requests).toHaveLength(1);
      expect(dialogs).toEqual([]);
      const handlers =
        "[...document.querySelectorAll('*')].flatMap((e) => e.getAttributeNames()).filter((n) => n.startsWith('on'))";
      expect(await page.evaluate(handlers)).toEqual([]);
    });

    test("and all of it is there to be read", async () => {
      expect(await page.locator("[data-status]").textContent()).toBe("failed");
      expect(await page.locator("details[data-node]").count()).toBe(3);
      const intent = await page.locator(".card pre").first().textContent();
      expect(intent).toContain("<script>window.broken = 1; document.title = 'owned'</script>");
      expect(intent).toContain("&lt;script&gt;&#60;b&#62;");
      expect(intent).toContain("\\x1b[31m\\u202e\\x00\\u2028");
      expect(await page.locator(".diff .added").count()).toBe(EVIL.split("\n").length);
      expect(await page.locator(".lane").count()).toBe(3);
    });

    test("a bar of the timeline is as long as its node took", async () => {
      const [track, bar] = await Promise.all([
        page.locator(".track").first().boundingBox(),
        page.locator(".bar").first().boundingBox(),
      ]);
      expect((bar?.width ?? 0) / (track?.width ?? 1)).toBeCloseTo(0.4, 1);
      expect(((bar?.x ?? 0) - (track?.x ?? 0)) / (track?.width ?? 1)).toBeCloseTo(0.1, 1);
    });
  },
);
