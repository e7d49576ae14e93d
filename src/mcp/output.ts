import { SandboxError } from "../../contracts/errors.js";
import type { ProcessExit, ProcessHandle, ProcessStream } from "../../contracts/types.js";
import { endOfWholeCharacters, OutputCollector } from "../util/output-collector.js";
import { createByteRedactor } from "../util/redact.js";
import { truncationMarker } from "../util/sanitize.js";
import type { JsonSchema } from "../util/schema.js";
import { type AnswerStyle, readable } from "./answer.js";
import { StreamPlaces } from "./stream-places.js";

const LAST_LINE = 200;
const LONGEST_READ = 3_600_000;

/** What the answers about a process have in common. */
export const PROCESS_FIELDS: Readonly<Record<string, JsonSchema>> = {
  process_id: { type: "string" },
  running: { type: "boolean" },
  exit_code: { type: "integer" },
  signal: { type: "string" },
  timed_out: { type: "boolean" },
  oom_killed: { type: "boolean" },
  duration_ms: { type: "integer" },
  stdout: { type: "string" },
  stderr: { type: "string" },
};

/** The output of one stream so far. */
interface Kept {
  readonly collector: OutputCollector;
  /** How many bytes of the stream have been seen or missed: where the next read goes on. */
  cursor: number;
  readonly places: StreamPlaces;
}

/** Follows the output of a process until it ends or nobody is interested any more. Secrets are hidden before anything is cut. */
export class FollowedOutput {
  readonly #style: AnswerStyle;
  readonly #streams: Readonly<Record<ProcessStream, Kept>>;
  readonly #stop = new AbortController();
  #lastLine = "";
  /** Resolves when all output is there. Rejects if it can't be read. */
  readonly complete: Promise<void>;

  constructor(handle: ProcessHandle, style: AnswerStyle) {
    this.#style = style;
    const empty = (): Kept => ({
      collector: new OutputCollector(style.maxOutput),
      cursor: 0,
      places: new StreamPlaces(),
    });
    this.#streams = { stdout: empty(), stderr: empty() };
    const follow = (stream: ProcessStream): Promise<void> => this.#follow(handle, stream);
    this.complete = Promise.all([follow("stdout"), follow("stderr")]).then(() => undefined);
    this.complete.catch(() => undefined);
  }

  /** The last line that came, for a progress message. */
  get lastLine(): string {
    return this.#lastLine;
  }

  /** Follows it no longer. */
  stop(): void {
    this.#stop.abort();
  }

  async #follow(handle: ProcessHandle, stream: ProcessStream): Promise<void> {
    const kept = this.#streams[stream];
    const redactor = createByteRedactor(this.#style.hidden);
    try {
      for (;;) {
        const options = { stream, cursor: kept.cursor, wait: LONGEST_READ, signal: this.#stop.signal };
        const { data, cursor, missed, ended } = await handle.read(options);
        if (missed > 0) kept.collector.push(Buffer.from(truncationMarker(missed)));
        kept.cursor = cursor;
        const shown = redactor.write(Buffer.from(data.buffer, data.byteOffset, data.byteLength));
        kept.places.add(kept.collector.result(false).bytes, shown.length, cursor - redactor.held);
        kept.collector.push(shown);
        this.#noteLine(shown);
        if (!ended) continue;
        kept.collector.push(redactor.end());
        return;
      }
    } catch (error) {
      if (!this.#stop.signal.aborted) throw error;
      // What is held back may be the start of a secret: it is shown with what follows it.
      kept.cursor -= redactor.held;
    }
  }

  #noteLine(bytes: Buffer): void {
    const text = readable(bytes.subarray(-4 * LAST_LINE).toString("utf8"), { ...this.#style, ansi: false });
    const line = text.split(/[\r\n]+/).findLast((each) => each.trim() !== "");
    if (line !== undefined) this.#lastLine = line.trim().slice(0, LAST_LINE);
  }

  /** What both streams are in an answer: together at most as long as the server's answers may be. */
  shown(processId: string): Record<ProcessStream, ShownStream> {
    const { maxOutput } = this.#style;
    const sizes = { stdout: this.#size("stdout"), stderr: this.#size("stderr") };
    const forStderr = Math.min(sizes.stderr, Math.max(Math.floor(maxOutput / 2), maxOutput - sizes.stdout));
    return {
      stdout: this.#show("stdout", maxOutput - forStderr, processId),
      stderr: this.#show("stderr", forStderr, processId),
    };
  }

  #size(stream: ProcessStream): number {
    return this.#streams[stream].collector.result(false).bytes;
  }

  #show(stream: ProcessStream, room: number, processId: string): ShownStream {
    const { collector, cursor, places } = this.#streams[stream];
    const { raw, bytes } = collector.result(true);
    const truncated = bytes > room;
    const head = places.of(endOfWholeCharacters(raw.subarray(0, Math.ceil(room / 2))));
    const text = truncated
      ? cut(
          raw,
          room,
          bytes,
          `process_read with process_id "${processId}", stream "${stream}" and from_byte ${head} shows them`,
        )
      : Buffer.from(raw).toString("utf8");
    return { text: readable(text, this.#style), bytes, truncated, cursor };
  }
}

/** One stream as it is in an answer. */
export interface ShownStream {
  readonly text: string;
  readonly bytes: number;
  readonly truncated: boolean;
  readonly cursor: number;
}

/** Head and tail of the kept bytes of a longer stream, with a line between them that says where the rest is. */
export function cut(kept: Uint8Array, room: number, bytes: number, advice: string): string {
  const smaller = new OutputCollector(room);
  smaller.push(kept);
  const { text } = smaller.result(false, bytes - kept.length);
  return text.replace(
    /\n\[\.\.\. (\d+) bytes left out \.\.\.\]\n/,
    (_, left: string) => `\n[... ${left} bytes left out; ${advice} ...]\n`,
  );
}

/** How a process ended, in words. */
export function endOf({ exitCode, signal, timedOut, oomKilled }: ProcessExit): string {
  if (timedOut) return `timed out and was killed, exit code ${exitCode}`;
  if (oomKilled === true) return `killed at the memory limit, exit code ${exitCode}`;
  return signal === undefined ? `exit code ${exitCode}` : `killed by ${signal}, exit code ${exitCode}`;
}

/** The exit of a process in the fields of an answer. */
export function exitFields(
  exit: ProcessExit | undefined,
  running: boolean = exit === undefined,
): Record<string, unknown> {
  if (exit === undefined) return { running };
  const { exitCode, signal, timedOut, durationMs, oomKilled } = exit;
  return {
    running: false,
    exit_code: exitCode,
    timed_out: timedOut,
    duration_ms: Math.round(durationMs),
    ...(signal !== undefined && { signal }),
    ...(oomKilled === true && { oom_killed: true }),
  };
}

/** The process of that id, with a hint for models if there is none. */
export function noProcess(error: unknown, id: string): unknown {
  if (!(error instanceof SandboxError) || error.code !== "not_found") return error;
  return new SandboxError("not_found", `There is no process "${id}" in this sandbox`, {
    hint: "use a process_id that exec returned; an ended process is forgotten after 10 minutes, or when 64 others have ended",
  });
}
