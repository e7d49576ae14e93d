import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import type { BatchProgress } from "../../src/batch.js";
import { drawLiveLine } from "../../src/cli/terminal/live-line.js";
import { createStyle } from "../../src/cli/terminal.js";
import { LiveView } from "../../src/cli/verbs/batch/live-view.js";
import { createLiveReporter } from "../../src/cli/verbs/run-view/live-reporter.js";
import type { RunEvent, RunEventBody } from "../../src/harness.js";

function terminal(columns: number): PassThrough & { isTTY: boolean; columns: number } {
  return Object.assign(new PassThrough(), { isTTY: true, columns });
}

const progress: BatchProgress = {
  total: 4,
  done: 0,
  passed: 0,
  failed: 0,
  refused: 0,
  infra: 0,
  running: 0,
  waiting: 4,
  causes: {},
  retries: 0,
  window: 4,
  elapsedMs: 0,
};

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
  const table = new LiveView(output, {}, ["a-task-with-a-name-that-is-longer-than-that"], () => progress);
  table.stop();
  const drawn = String(output.read());
  expect([drawn.slice(0, 8), drawn.slice(-6)]).toEqual(["\x1b[J\x1b[?7l", "\n\x1b[?7h"]);
});

test("the last drawing of a table shows every task", () => {
  const output = Object.assign(terminal(80), { rows: 5 });
  const ids = Array.from({ length: 30 }, (_, at) => `task-${at}`);
  const table = new LiveView(output, {}, ids, () => progress);
  for (const id of ids.slice(10)) table.set(id, "failed");
  table.stop();
  const drawn = String(output.read());
  expect(ids.filter((id) => !drawn.includes(`${id} `))).toEqual([]);
  expect(drawn).not.toContain("more");
});

test("a large batch has a row for what runs and what failed, and one line for all", async () => {
  const output = Object.assign(terminal(120), { rows: 20 });
  const ids = Array.from({ length: 1000 }, (_, at) => `task-${at}`);
  const many = {
    ...progress,
    total: 1000,
    done: 12,
    passed: 10,
    failed: 2,
    rate: 4,
    remainingMs: 247_000,
    costUsd: 1.5,
  };
  const table = new LiveView(output, {}, ids, () => many);
  try {
    table.set("task-1", "passed");
    table.set("task-2", "running");
    table.set("task-3", "failed", "exit code 1");
    await expect
      .poll(() => String(output.read() ?? ""))
      .toContain("12 of 1000 done · 10 passed · 2 failed · 4.0/s · 4 min 7 s left · $1.50");
  } finally {
    table.stop();
  }
  const last = String(output.read() ?? "");
  expect(last).toContain("task-3");
  expect(last).not.toMatch(/task-1 /);
});

test("what is said about all of a batch is folded where the terminal ends, and no row is lost by it", async () => {
  const output = Object.assign(terminal(80), { rows: 12 });
  const ids = Array.from({ length: 60 }, (_, at) => `task-${at}`);
  const busy = {
    ...progress,
    ...{ total: 10_000, done: 4321, passed: 4000, failed: 300, refused: 21, running: 100 },
    ...{ retries: 140, causes: { unavailable: 120, backend_lost: 20 }, rate: 44, remainingMs: 129_000, costUsd: 12 },
  };
  const view = new LiveView(output, { NO_COLOR: "1" }, ids, () => busy);
  try {
    for (const id of ids) view.set(id, "running");
    let drawn = "";
    await expect.poll(() => (drawn += String(output.read() ?? ""))).toContain("$12.00");
    const lines = drawn.slice(0, drawn.indexOf("\x1b[?7h")).split("\n");
    expect(lines.slice(-3)).toEqual([
      "4321 of 10000 done · 100 running · 4000 passed · 300 failed · 21 refused",
      "140 retries (unavailable 120, backend_lost 20) · 44/s · 2 min 9 s left · $12.00",
      "",
    ]);
    expect(lines.length).toBeLessThanOrEqual(12);
  } finally {
    view.stop();
  }
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
