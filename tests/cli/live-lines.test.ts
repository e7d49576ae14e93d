import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { drawLiveLine } from "../../src/cli/terminal/live-line.js";
import { LiveTable } from "../../src/cli/verbs/task/live-table.js";

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
