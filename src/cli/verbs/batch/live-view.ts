import type { AttemptStage, BatchProgress } from "../../../batch.js";
import { toInertLine } from "../../../util/inert-text.js";
import { columnsOf, createStyle, formatTable, type Output, type Style } from "../../terminal.js";
import { progressLines } from "./progress-text.js";

const TICK = 200;
/** More tasks than these have no row of their own when all is over. */
const MOST_ROWS = 50;
const ORDER: readonly AttemptStage[] = [
  ...(["running", "starting", "stopping"] as const),
  ...(["infra", "refused", "failed", "waiting", "passed"] as const),
];

interface Row {
  stage: AttemptStage;
  note: string;
  since: number;
}

/** A live table of the tasks and a line about all of them on a terminal; nothing on other outputs. */
export class LiveView {
  readonly #output: Output;
  readonly #style: Style;
  /** Of a large batch, those that are under way or have failed. */
  readonly #rows: Map<string, Row>;
  readonly #isLarge: boolean;
  readonly #progress: () => BatchProgress;
  #timer: NodeJS.Timeout | undefined;
  #height = 0;

  constructor(
    output: Output,
    env: Readonly<Record<string, string | undefined>>,
    taskIds: readonly string[],
    progress: () => BatchProgress,
  ) {
    this.#output = output;
    this.#style = createStyle(output, env);
    this.#progress = progress;
    const now = performance.now();
    this.#isLarge = taskIds.length > MOST_ROWS;
    this.#rows = new Map(this.#isLarge ? [] : taskIds.map((id) => [id, { stage: "waiting", note: "", since: now }]));
    if (output.isTTY === true) this.#timer = setInterval(() => this.#draw(), TICK).unref();
  }

  /** Sets the stage of a task. */
  set(taskId: string, stage: AttemptStage, note?: string): void {
    if (this.#timer === undefined) return;
    const row = this.#rows.get(taskId);
    if (this.#isLarge && (stage === "waiting" || stage === "passed")) this.#rows.delete(taskId);
    else this.#rows.set(taskId, { stage, note: note ?? row?.note ?? "", since: performance.now() });
  }

  /** Draws the table for the last time, and leaves it there. */
  stop(): void {
    if (this.#timer === undefined) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    // Nothing has to move up over it again, so it may be higher than the screen.
    this.#draw(Math.min(this.#rows.size, MOST_ROWS));
  }

  #draw(least = 3): void {
    const all = this.#timer === undefined ? [] : progressLines(this.#progress(), columnsOf(this.#output));
    const room = Math.max(least, (this.#output.rows ?? 24) - all.length - 2);
    const sorted = [...this.#rows].sort(([, a], [, b]) => ORDER.indexOf(a.stage) - ORDER.indexOf(b.stage));
    const shown = sorted.slice(0, room).map(([id, row]) => this.#cells(id, row));
    const more = sorted.length - shown.length;
    const lines = formatTable(shown).split("\n").slice(0, -1);
    if (more > 0) lines.push(this.#style.dim(`and ${more} more`));
    lines.push(...all.map(this.#style.bold));
    const up = this.#height > 0 ? `\x1b[${this.#height}A` : "";
    // Turn line wrapping off: a wrapped line would take two rows, and the cursor would not move up far enough.
    this.#output.write(`${up}\x1b[J\x1b[?7l${lines.map((line) => `${line}\n`).join("")}\x1b[?7h`);
    this.#height = lines.length;
  }

  #cells(id: string, { stage, note, since }: Row): string[] {
    const { good, bad, dim, bold } = this.#style;
    const isUnderWay = stage === "starting" || stage === "running" || stage === "stopping";
    const isBad = stage === "failed" || stage === "refused" || stage === "infra";
    const paint = stage === "passed" ? good : isBad ? bad : isUnderWay ? bold : dim;
    const width = Math.max(20, columnsOf(this.#output) - 50);
    const time = isUnderWay ? `${Math.floor((performance.now() - since) / 1000)} s` : "";
    return [toInertLine(id).slice(0, 30), paint(stage), time, toInertLine(note).slice(0, width)];
  }
}
