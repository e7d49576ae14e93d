import type { Output } from "./output.js";

/** Draws a line over the previous one, cut to the terminal's width. */
export function drawLiveLine(output: Output, line: string): void {
  output.write(`\r\x1b[2K${[...line].slice(0, Math.max(1, columnsOf(output) - 1)).join("")}`);
}

/** The width of a terminal; 80 if it does not report one. */
export function columnsOf(output: Output): number {
  return output.columns || 80;
}
