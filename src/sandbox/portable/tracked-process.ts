import { SandboxError } from "../../../contracts/errors.js";
import type { ProcessExit, ProcessOutput, ProcessStream, ReadOutputOptions } from "../../../contracts/types.js";
import { isoTime } from "../../util/iso-time.js";
import { MAX_DRAIN } from "../types.js";
import { abortMessage } from "./abort-message.js";
import { OutputRing, RING_BYTES } from "./output-ring.js";

/** What a process can be asked while it runs. */
export interface LiveProcess {
  kill(signal: string): void;
  writeStdin(chunk: Uint8Array): Promise<void>;
  closeStdin(): Promise<void>;
  resize(cols: number, rows: number): Promise<void>;
}

type About = Pick<TrackedProcess, "id" | "argv" | "hasStdin" | "hasTerminal" | "inBackground" | "ended" | "live">;

/** What is known about a process that `spawn` started: how it was started, its last output, how it ended. */
export class TrackedProcess {
  readonly id: string;
  readonly argv: readonly string[];
  readonly startedAt: string = isoTime();
  readonly hasStdin: boolean;
  readonly hasTerminal: boolean;
  /** Whether its output is read whoever listens, and `wait` waits for the rest of it. */
  readonly inBackground: boolean;
  /** Settles when the process has ended. */
  readonly ended: Promise<ProcessExit>;
  /** Resolves when it has ended and no more output comes. */
  readonly completed: Promise<void>;
  /** Absent once the process has ended, so that nothing of its backend is kept. */
  live: LiveProcess | undefined;
  /** How it ended. Absent if it runs, or if that can't be known. */
  exit: ProcessExit | undefined;
  hasEnded = false;
  #ring: OutputRing | undefined = new OutputRing();
  #isComplete = false;
  #completes: () => void = () => undefined;
  /** Why its output can't be read any more. */
  #gone: SandboxError | undefined;
  readonly #waiting = new Set<() => void>();

  constructor(about: About) {
    this.id = about.id;
    this.argv = [...about.argv];
    this.hasStdin = about.hasStdin;
    this.hasTerminal = about.hasTerminal;
    this.inBackground = about.inBackground;
    this.completed = new Promise((resolve) => {
      this.#completes = resolve;
    });
    this.ended = about.ended;
    this.live = about.live;
  }

  /** How many bytes it has written so far. */
  written(stream: ProcessStream): number {
    return this.#ring?.written(stream) ?? 0;
  }

  /** Keeps output that was read. */
  add(stream: ProcessStream, chunk: Uint8Array): void {
    this.#ring?.push(stream, chunk);
    this.#wake();
  }

  /** No more output comes. */
  complete(): void {
    this.#isComplete = true;
    this.live = undefined;
    this.#completes();
    this.#wake();
  }

  /** Frees the output. Who still asks for it gets `error`. */
  forget(error: SandboxError): void {
    this.#gone ??= error;
    this.#ring = undefined;
    this.#wake();
  }

  /** Reads kept output from a position, after waiting for some if asked to. */
  async read(opts: ReadOutputOptions): Promise<ProcessOutput> {
    const { cursor = 0, stream, maxBytes = RING_BYTES, wait = 0, signal } = opts;
    const written = this.#readable().written(stream);
    if (cursor > written) {
      throw new SandboxError(
        "invalid_argument",
        `Invalid cursor: expected at most ${written}, the end of the ${stream ?? "output"} so far, got ${cursor}`,
        { hint: "pass the cursor of the last read of the same stream, or 0" },
      );
    }
    const deadline = performance.now() + wait;
    for (;;) {
      if (signal?.aborted) throw new SandboxError("aborted", abortMessage(signal), { cause: signal.reason });
      const left = deadline - performance.now();
      if (this.#readable().written(stream) > cursor || this.#isComplete || left <= 0) break;
      await this.#news(left, signal);
    }
    const ring = this.#readable();
    const part = ring.read(cursor, maxBytes, stream);
    return { ...part, ended: this.#isComplete && part.cursor === ring.written(stream) };
  }

  #readable(): OutputRing {
    if (this.#ring === undefined)
      throw this.#gone ?? new SandboxError("not_found", `The process ${this.id} is forgotten`);
    return this.#ring;
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
  }

  async #news(ms: number, signal: AbortSignal | undefined): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    let wake: () => void = () => undefined;
    const news = new Promise<void>((resolve) => {
      wake = resolve;
    });
    this.#waiting.add(wake);
    signal?.addEventListener("abort", wake, { once: true });
    // Between its end and the end of its output nothing else may keep the event loop alive.
    const pause = this.hasEnded ? Math.min(ms, MAX_DRAIN) : ms;
    if (Number.isFinite(pause)) timer = setTimeout(wake, pause);
    try {
      await news;
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(wake);
      signal?.removeEventListener("abort", wake);
    }
  }
}
