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
