import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { drawLiveLine } from "../../src/cli/terminal/live-line.js";
import { createStyle } from "../../src/cli/terminal.js";
import { createLiveReporter } from "../../src/cli/verbs/run-view/live-reporter.js";
import { LiveTable } from "../../src/cli/verbs/task/live-table.js";
import type { RunEvent, RunEventBody } from "../../src/harness.js";

function terminal(columns: number): PassThrough & { isTTY: boolean; columns: number } {
  return Object.assign(new PassThrough(), { isTTY: true, columns });
}

test.each([
  [0, 79],
  [1, 1],
  [5, 4],
  [200, 100],
])("a live line stays one line on a terminal of %i columns", (columns, length) => {
  const output = terminal(columns);
  drawLiveLine(output, "x".repeat(100));
  expect(String(output.read())).toBe(`\r\x1b[2K${"x".repeat(length)}`);
});

test("no line of a live table is folded", () => {
  const output = terminal(20);
  const table = new LiveTable(output, {}, ["a-task-with-a-name-that-is-longer-than-that"]);
  table.stop();
  const drawn = String(output.read());
  expect([drawn.slice(0, 8), drawn.slice(-6)]).toEqual(["\x1b[J\x1b[?7l", "\n\x1b[?7h"]);
});

test("the last drawing of a table shows every task", () => {
  const output = Object.assign(terminal(80), { rows: 5 });
  const ids = Array.from({ length: 30 }, (_, at) => `task-${at}`);
  const table = new LiveTable(output, {}, ids);
  for (const id of ids.slice(10)) table.set(id, "failed");
  table.stop();
  const drawn = String(output.read());
  expect(ids.filter((id) => !drawn.includes(`${id} `))).toEqual([]);
  expect(drawn).not.toContain("more");
});

test("the live line shows the tool call under way, and turns and cost as they grow", async () => {
  const output = terminal(120);
  const reporter = createLiveReporter(output, createStyle(output, { NO_COLOR: "1" }));
  const say = (event: RunEventBody): void =>
    void reporter.event?.({ v: 1, seq: 1, ts: "", runId: "r", ...event } as RunEvent);
  const shown = (text: string) => expect.poll(() => String(output.read() ?? "")).toContain(text);
  const ids = { nodeId: "fix" };
  const usage = { input: 1500, output: 500, cacheRead: 0, cacheWrite: 0 };
  try {
    say({ type: "node.started", ...ids, name: "fix", kind: "agent", attempt: 1 });
    say({ type: "agent.usage", ...ids, usage: { ...usage, input: 0, output: 0 }, costUsd: null, turns: 1 });
    say({ type: "agent.tool_call", ...ids, tool: "Bash", summary: "npm test\x1b[2J" });
    await shown("· 1 turn · Bash npm test");
    say({ type: "agent.usage", ...ids, usage, costUsd: null, turns: 2 });
    await shown("· 2 turns, 2k tokens · Bash npm test");
    say({ type: "agent.usage", ...ids, usage, costUsd: 0.25, turns: 2 });
    await shown("· 2 turns, $0.25 ·");
  } finally {
    reporter.stop();
  }
});
