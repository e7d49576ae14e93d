import type { TaskStage } from "../../../tasks.js";
import { toInertLine } from "../../../util/inert-text.js";
import { columnsOf, createStyle, formatTable, type Output, type Style } from "../../terminal.js";

const TICK = 200;
const ORDER: readonly TaskStage[] = ["running", "starting", "stopping", "failed", "waiting", "done"];

interface Row {
  stage: TaskStage;
  note: string;
  since: number;
}

/** A live table of all tasks on a terminal; nothing on other outputs. */
export class LiveTable {
  readonly #output: Output;
  readonly #style: Style;
  readonly #rows: Map<string, Row>;
  #timer: NodeJS.Timeout | undefined;
  #height = 0;

  constructor(output: Output, env: Readonly<Record<string, string | undefined>>, taskIds: readonly string[]) {
    this.#output = output;
    this.#style = createStyle(output, env);
    const now = Date.now();
    this.#rows = new Map(taskIds.map((id) => [id, { stage: "waiting", note: "", since: now }]));
    if (output.isTTY === true) this.#timer = setInterval(() => this.#draw(), TICK).unref();
  }

  /** Sets the stage of a task. */
  set(taskId: string, stage: TaskStage, note = ""): void {
    const row = this.#rows.get(taskId);
    this.#rows.set(taskId, { stage, note: note || (row?.note ?? ""), since: Date.now() });
  }

  /** Draws the table for the last time, with every task: nothing has to move up over it again. */
  stop(): void {
    if (this.#timer === undefined) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#draw(this.#rows.size);
  }

  #draw(least = 3): void {
    const room = Math.max(least, (this.#output.rows ?? 24) - 2);
    const sorted = [...this.#rows].sort(([, a], [, b]) => ORDER.indexOf(a.stage) - ORDER.indexOf(b.stage));
    const shown = sorted.slice(0, room).map(([id, row]) => this.#cells(id, row));
    const more = sorted.length - shown.length;
    const lines = formatTable(shown).split("\n").slice(0, -1);
    if (more > 0) lines.push(this.#style.dim(`and ${more} more`));
    const up = this.#height > 0 ? `\x1b[${this.#height}A` : "";
    // Turn line wrapping off: a wrapped line would take two rows, and the cursor would not move up far enough.
    this.#output.write(`${up}\x1b[J\x1b[?7l${lines.map((line) => `${line}\n`).join("")}\x1b[?7h`);
    this.#height = lines.length;
  }

  #cells(id: string, { stage, note, since }: Row): string[] {
    const { good, bad, dim, bold } = this.#style;
    const paint = { waiting: dim, starting: bold, running: bold, stopping: dim, done: good, failed: bad }[stage];
    const isUnderWay = stage === "starting" || stage === "running" || stage === "stopping";
    const width = Math.max(20, columnsOf(this.#output) - 50);
    const time = isUnderWay ? `${Math.floor((Date.now() - since) / 1000)} s` : "";
    return [toInertLine(id).slice(0, 30), paint(stage), time, toInertLine(note).slice(0, width)];
  }
}
