import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs";
import { createRedactor, type Redactor } from "../util/redact.js";
import type { RunEvent, RunEventBody } from "./types.js";

/** The events of a run, in a file that is only ever added to. */
export class EventLog {
  readonly #file: number;
  readonly #runId: string;
  readonly #redactor: Redactor;
  #seq: number;

  /** Opens the file of a run; goes on after the last whole event that is there. */
  constructor(path: string, runId: string, redactor: Redactor = createRedactor()) {
    this.#runId = runId;
    this.#redactor = redactor;
    const { last, end } = lastWholeEvent(path);
    this.#seq = last;
    this.#file = openSync(path, "a", 0o600);
    // A process that was killed may have left half a line.
    ftruncateSync(this.#file, end);
  }

  /** Numbers and dates an event, hides secrets in it, and has it written when it returns. */
  append(body: RunEventBody): RunEvent {
    const hidden = this.#redacted(body) as RunEventBody;
    const event: RunEvent = { v: 1, seq: this.#seq + 1, ts: new Date().toISOString(), runId: this.#runId, ...hidden };
    const line = Buffer.from(`${JSON.stringify(event)}\n`);
    for (let at = 0; at < line.length; ) at += writeSync(this.#file, line, at);
    this.#seq += 1;
    return event;
  }

  close(): void {
    closeSync(this.#file);
  }

  #redacted(value: unknown): unknown {
    if (typeof value === "string") return this.#redactor.write(value) + this.#redactor.end();
    if (Array.isArray(value)) return value.map((item) => this.#redacted(item));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, this.#redacted(item)]));
  }
}

/** Reads the events of a run; what stands behind the last whole line is left out. */
export function readEvents(path: string): RunEvent[] {
  return wholeLines(readFileSync(path)).lines.map((line) => JSON.parse(line) as RunEvent);
}

function lastWholeEvent(path: string): { last: number; end: number } {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { last: 0, end: 0 };
    throw error;
  }
  const { lines, end } = wholeLines(bytes);
  const line = lines.at(-1);
  return { last: line === undefined ? 0 : (JSON.parse(line) as RunEvent).seq, end };
}

function wholeLines(bytes: Buffer): { lines: string[]; end: number } {
  const end = bytes.lastIndexOf(10) + 1;
  const lines = bytes.toString("utf8", 0, end).split("\n").slice(0, -1);
  return { lines, end };
}
