import type { Output } from "./output.js";

/** Draws one line over the last one, cut to the terminal's width so that it stays one line. */
export function drawLiveLine(output: Output, line: string): void {
  output.write(`\r\x1b[2K${[...line].slice(0, Math.max(1, columnsOf(output) - 1)).join("")}`);
}

/** The width of a terminal, also of one that does not say. */
export function columnsOf(output: Output): number {
  return output.columns || 80;
}
