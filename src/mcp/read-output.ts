import { setTimeout as delay } from "node:timers/promises";
import type { ProcessHandle, ProcessStream } from "../../contracts/types.js";
import type { Sandbox } from "../sandbox/types.js";
import { endOfWholeCharacters } from "../util/output-collector.js";
import { createByteRedactor } from "../util/redact.js";
import { truncationMarker } from "../util/sanitize.js";
import { type AnswerStyle, readable } from "./answer.js";

/** Where the next read of a process goes on, by stream. */
export type Cursors = Record<ProcessStream, number>;

const MOST = 1_000;
/** How far before a page a secret may start that goes on in it. */
const LONGEST_SECRET = 8 << 10;

/** How far the output of each process has been shown to the client. */
export class ShownSoFar {
  readonly #bySandbox = new WeakMap<Sandbox, Map<string, Cursors>>();

  /** Where the next read goes on. */
  of(sandbox: Sandbox, id: string): Cursors {
    return this.#bySandbox.get(sandbox)?.get(id) ?? { stdout: 0, stderr: 0 };
  }

  /** Notes how far the client has seen it. */
  set(sandbox: Sandbox, id: string, cursors: Cursors): void {
    const known = this.#bySandbox.get(sandbox) ?? new Map<string, Cursors>();
    this.#bySandbox.set(sandbox, known);
    known.delete(id);
    known.set(id, cursors);
    const [oldest] = known.keys();
    if (known.size > MOST && oldest !== undefined) known.delete(oldest);
  }
}

/** A page of output. */
export interface Page {
  readonly text: string;
  /** Where the next page starts. */
  readonly next: number;
  /** Whether nothing comes after it. */
  readonly isLast: boolean;
  /** Whether there already is more. */
  readonly hasMore: boolean;
}

/** Reads one page of the output, of one stream or of both in their order. A secret is never cut in half by its start or its end. */
export async function readPage(
  handle: ProcessHandle,
  { cursor, stream, room }: { cursor: number; stream?: ProcessStream; room: number },
  style: AnswerStyle,
): Promise<Page> {
  const early = Math.max(0, cursor - LONGEST_SECRET);
  const reads = { cursor: early, maxBytes: room + cursor - early, ...(stream !== undefined && { stream }) };
  const part = await handle.read(reads);
  const all = Buffer.from(part.data.buffer, part.data.byteOffset, part.data.byteLength);
  const start = part.cursor - all.length;
  const before = all.subarray(0, Math.max(0, cursor - start));
  const rest = all.subarray(before.length);
  const data = rest.subarray(0, room);
  const isLast = part.ended && data.length === rest.length;
  const end = part.cursor - (rest.length - data.length);
  // Where the cursor is beyond the end, this read says so.
  if (end < cursor) await handle.read({ ...reads, cursor });
  const whole = isLast ? data.length : endOfWholeCharacters(data);
  const redactor = createByteRedactor(style.hidden);
  redactor.write(before);
  // The start of a secret, or bytes that the page has nothing to do with.
  const undecided = before.subarray(before.length - redactor.held);
  const pieces = [redactor.write(data.subarray(0, whole))];
  const held = isLast ? 0 : Math.min(redactor.held, whole);
  if (isLast) pieces.push(redactor.end());
  const missed = Math.max(0, start - cursor);
  const gone = missed > 0 ? truncationMarker(missed).trimStart() : "";
  return {
    text: gone + readable(without(undecided, Buffer.concat(pieces)).toString("utf8"), style),
    next: Math.max(cursor, end - (data.length - whole) - held),
    isLast,
    hasMore: !isLast && data.length === room,
  };
}

/** The bytes after those that they begin with; all, if they begin otherwise: with what takes the place of a secret. */
function without(start: Buffer, bytes: Buffer): Buffer {
  return bytes.subarray(0, start.length).equals(start) ? bytes.subarray(start.length) : bytes;
}

/** The next output of both streams after the cursors. Waits for some, or for the end of the process, if there is none yet. */
export async function readNew(
  handle: ProcessHandle,
  from: Cursors,
  { wait, signal, settle = 0 }: { wait: number; signal: AbortSignal; settle?: number },
  style: AnswerStyle,
): Promise<Record<ProcessStream, Page>> {
  if (wait > 0) await handle.read({ cursor: from.stdout + from.stderr, maxBytes: 1, wait, signal });
  if (settle > 0 && handle.state === "running") await delay(settle, undefined, { signal }).catch(() => undefined);
  const room = Math.floor(style.maxOutput / 2);
  const stderr = await readPage(handle, { cursor: from.stderr, stream: "stderr", room }, style);
  const left = style.maxOutput - Buffer.byteLength(stderr.text);
  const stdout = await readPage(handle, { cursor: from.stdout, stream: "stdout", room: Math.max(room, left) }, style);
  return { stdout, stderr };
}

/** The text of both streams, the second below a line that names it. */
export function joinStreams(stdout: string, stderr: string): string {
  if (stderr === "") return stdout;
  return `${stdout}${stdout === "" || stdout.endsWith("\n") ? "" : "\n"}--- stderr\n${stderr}`;
}
