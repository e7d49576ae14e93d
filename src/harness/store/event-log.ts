import { closeSync, constants, ftruncateSync, readFileSync, writeSync } from "node:fs";
import { SandboxError } from "../../../contracts/errors.js";
import { type OpenDirectory, openIn, readIn } from "../../util/beneath.js";
import { isoTime } from "../../util/iso-time.js";
import { createRedactor, type Redactor } from "../../util/redact.js";
import type { RunEvent, RunEventBody } from "../types.js";

const { O_APPEND, O_CREAT, O_WRONLY } = constants;
const FILE = "events.jsonl";

/** The events of a run, in a file that is only ever added to. */
export class EventLog {
  readonly #file: number;
  readonly #runId: string;
  readonly #redactor: Redactor;
  #seq: number;

  /** Opens the file in the directory of a run; continues after the last whole event that is there. */
  constructor(directory: OpenDirectory, runId: string, redactor: Redactor = createRedactor()) {
    this.#runId = runId;
    this.#redactor = redactor;
    const { last, end } = lastWholeEvent(directory);
    this.#seq = last;
    this.#file = openIn(directory, FILE, O_APPEND | O_CREAT | O_WRONLY);
    // A process that was killed may have left half a line.
    ftruncateSync(this.#file, end);
  }

  /** Numbers and dates an event, hides secrets in it, and has it written when it returns. */
  append(body: RunEventBody): RunEvent {
    const hidden = this.#redacted(body) as RunEventBody;
    const event: RunEvent = { v: 1, seq: this.#seq + 1, ts: isoTime(), runId: this.#runId, ...hidden };
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

function lastWholeEvent(directory: OpenDirectory): { last: number; end: number } {
  let bytes: Buffer;
  try {
    bytes = readIn(directory, FILE);
  } catch (error) {
    if (error instanceof SandboxError && error.code === "not_found") return { last: 0, end: 0 };
    throw error;
  }
  const { lines, end } = wholeLines(bytes);
  const line = lines.at(-1);
  return { last: line === undefined ? 0 : seqIn(line, directory), end };
}

function seqIn(line: string, { path }: OpenDirectory): number {
  try {
    const { seq } = JSON.parse(line) as Partial<RunEvent>;
    if (Number.isSafeInteger(seq)) return seq as number;
  } catch {
    // Reported below.
  }
  throw new SandboxError("tampered", `${FILE} in ${path} ends with a line that is not an event`, {
    hint: "another program has written to it; start a new run",
  });
}

function wholeLines(bytes: Buffer): { lines: string[]; end: number } {
  const end = bytes.lastIndexOf(10) + 1;
  const lines = bytes.toString("utf8", 0, end).split("\n").slice(0, -1);
  return { lines, end };
}
