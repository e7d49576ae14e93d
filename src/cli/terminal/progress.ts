import { toInertLine } from "../../util/inert-text.js";
import { drawLiveLine } from "./live-line.js";
import type { Output } from "./output.js";

const PATIENCE = 1_000;
const TICK = 120;
const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/** A line on a terminal that shows what is going on, once it has taken a second. */
export class Progress {
  readonly #output: Output;
  readonly #since = Date.now();
  #timer: NodeJS.Timeout | undefined;
  #what: string;
  #shown = false;

  constructor(output: Output, what: string) {
    this.#output = output;
    this.#what = what;
    if (output.isTTY !== true) return;
    this.#timer = setTimeout(() => {
      this.#timer = setInterval(() => this.#draw(), TICK).unref();
      this.#draw();
    }, PATIENCE).unref();
  }

  update(what: string): void {
    this.#what = what;
  }

  /** Removes the line. */
  stop(): void {
    clearTimeout(this.#timer);
    clearInterval(this.#timer);
    this.#timer = undefined;
    if (this.#shown) this.#output.write("\r\x1b[2K");
    this.#shown = false;
  }

  #draw(): void {
    const elapsed = Date.now() - this.#since;
    const frame = FRAMES[Math.floor(elapsed / TICK) % FRAMES.length];
    const line = `${frame} ${toInertLine(this.#what)} (${Math.floor(elapsed / 1000)} s)`;
    drawLiveLine(this.#output, line);
    this.#shown = true;
  }
}
