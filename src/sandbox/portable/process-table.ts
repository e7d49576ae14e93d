import { SandboxError } from "../../../contracts/errors.js";
import type { TrackedProcess } from "./tracked-process.js";

/** How long an ended process can be read, in milliseconds. */
const KEPT_FOR = 600_000;
/** How many ended processes can be read. */
const KEPT_ENDED = 64;

/** The processes that `spawn` started in one open sandbox: those that run, and the last that ended. */
export class ProcessTable {
  readonly #processes = new Map<string, TrackedProcess>();
  /** The ended ones, in the order of their ends, each with the timer that forgets it. */
  readonly #ended = new Map<TrackedProcess, NodeJS.Timeout>();
  readonly #keptFor: number;

  constructor(keptFor: number = KEPT_FOR) {
    this.#keptFor = keptFor;
  }

  /** All processes, in the order of their starts. */
  all(): TrackedProcess[] {
    return [...this.#processes.values()];
  }

  /** The process of that id, or `not_found`. */
  find(id: string): TrackedProcess {
    const found = this.#processes.get(id);
    if (found !== undefined) return found;
    throw new SandboxError("not_found", `There is no process "${id}" in this sandbox`, {
      hint: `processes() lists them; an ended one is forgotten after ${KEPT_FOR / 60_000} minutes, or when ${KEPT_ENDED} others have ended`,
    });
  }

  /** Adds a process that has just started. */
  add(process: TrackedProcess): void {
    this.#processes.set(process.id, process);
  }

  /** Starts the time for which an ended process can be read. */
  ended(process: TrackedProcess): void {
    if (!this.#processes.has(process.id)) return;
    this.#ended.set(process, setTimeout(() => this.#forget(process), this.#keptFor).unref());
    const [oldest] = this.#ended.keys();
    if (this.#ended.size > KEPT_ENDED && oldest !== undefined) this.#forget(oldest);
  }

  /** Forgets everything, because the sandbox is closed. */
  close(): void {
    for (const process of this.#processes.values()) {
      process.forget(new SandboxError("closed", `The sandbox of the process ${process.id} was torn down`));
    }
    for (const timer of this.#ended.values()) clearTimeout(timer);
    this.#processes.clear();
    this.#ended.clear();
  }

  #forget(process: TrackedProcess): void {
    clearTimeout(this.#ended.get(process));
    this.#ended.delete(process);
    this.#processes.delete(process.id);
    process.forget(new SandboxError("not_found", `The process ${process.id} ended long ago, and its output is gone`));
  }
}
