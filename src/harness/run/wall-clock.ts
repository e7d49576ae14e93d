import { SandboxError } from "../../../contracts/errors.js";

/**
 * Milliseconds after the wall until which a run may still start, its work is saved, and its sandbox is left; the report
 * comes then.
 */
const LATE = { starting: 0, saving: 0, leaving: 200 };
/** Milliseconds before the wall at which an opening is given up, so that undoing it belongs to the wall; a part of the wall at most. */
const UNDOING = { ms: 1_000, most: 0.25 };
/** What is set aside for the end of a run, at least and at most, as parts of the wall; and the most in milliseconds. */
const ASIDE = { least: 0.05, most: 0.25, ms: 30_000 };

/**
 * The time that a whole run may take (`limits.wall`), from its call to its report. Saving the work and leaving the sandbox
 * belong to it, so nodes end a little before: a twentieth of the wall is set aside, or twice what it took to open the sandbox. A push does not.
 */
export class WallClock {
  readonly wall: number;
  /** Aborted when the wall is over. */
  readonly signal: AbortSignal;
  /** Aborted when a sandbox that is not open yet will not be open in time. */
  readonly openingSignal: AbortSignal;
  readonly #startedAt: number;
  readonly #over = new AbortController();
  readonly #tooLateToOpen = new AbortController();
  readonly #timers: readonly NodeJS.Timeout[];
  #aside = 0;
  #outside = 0;

  constructor(wall: number, startedAt: number = performance.now()) {
    this.wall = wall;
    this.#startedAt = startedAt;
    this.signal = this.#over.signal;
    this.openingSignal = this.#tooLateToOpen.signal;
    const undoing = Math.min(UNDOING.ms, wall * UNDOING.most);
    this.#timers = [abortIn(this.#over, this.left), abortIn(this.#tooLateToOpen, this.left - undoing)];
  }

  /** Milliseconds since the run was called. */
  get elapsed(): number {
    return performance.now() - this.#startedAt;
  }

  get left(): number {
    return this.wall - this.elapsed;
  }

  /** To be called with how long the sandbox took to open. */
  setAside(opening: number): void {
    this.#aside = Math.min(Math.max(2 * opening, this.wall * ASIDE.least), this.wall * ASIDE.most, ASIDE.ms);
  }

  /** Milliseconds until nodes must have ended. */
  get leftForNodes(): number {
    return Math.max(0, this.left - this.#aside);
  }

  /** Waits for a part of the run that is not a node, not longer than there is time for it: then it continues with nobody waiting. */
  async bounded<T>(part: keyof typeof LATE, work: () => Promise<T>): Promise<T> {
    const left = this.left + this.#outside + LATE[part];
    const tooLate = new SandboxError("unavailable", `the time of the run (${this.wall} ms) is over`);
    // A sandbox is closed all the same.
    if (left <= 0 && part !== "leaving") throw tooLate;
    let timer: NodeJS.Timeout | undefined;
    const over = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(tooLate), Math.max(0, left));
    });
    try {
      return await Promise.race([work(), over]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Runs work that does not count: a push is asked for explicitly, may follow a run whose time is over, and has its own limits. */
  async outside<T>(work: () => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    try {
      return await work();
    } finally {
      this.#outside += performance.now() - startedAt;
    }
  }

  /** Removes its timers. */
  end(): void {
    for (const timer of this.#timers) clearTimeout(timer);
  }
}

function abortIn(controller: AbortController, ms: number): NodeJS.Timeout {
  if (ms <= 0) controller.abort();
  return setTimeout(() => controller.abort(), Math.max(0, ms));
}
