import type { JournalState } from "./task-states.js";
import type { BatchProgress, TaskOutcome } from "./types.js";

/** The rate is that of this many last tasks. */
const LATEST = 200;

/** Counts the tasks of a batch as they end. */
export class Tally {
  readonly #counts: Record<TaskOutcome, number> = { passed: 0, failed: 0, refused: 0, infra: 0 };
  readonly #causes = new Map<string, number>();
  readonly #total: number;
  readonly #start = performance.now();
  /** When the latest tasks of this run ended. */
  readonly #endings: number[] = [];
  #cost = 0;
  #hasCost = false;
  #priced = 0;
  #retries = 0;

  /** Starts with what earlier runs have done of these tasks. */
  constructor(ids: readonly string[], { tasks, cost }: JournalState) {
    this.#total = ids.length;
    this.#cost = cost;
    this.#hasCost = cost > 0;
    for (const id of ids) {
      const { outcome, cost: own = 0, attempts = 0 } = tasks.get(id) ?? {};
      if (outcome !== undefined) this.#counts[outcome] += 1;
      if (own > 0) this.#priced += attempts;
    }
  }

  /** A task is done. */
  add(outcome: TaskOutcome): void {
    this.#counts[outcome] += 1;
    this.#endings.push(performance.now());
    if (this.#endings.length > LATEST) this.#endings.shift();
  }

  /** An attempt has cost something. */
  spend(usd: number | undefined): void {
    if (usd === undefined) return;
    this.#cost += usd;
    this.#priced += 1;
    this.#hasCost = true;
  }

  /** The infrastructure has failed an attempt. */
  addCause(code: string, isRetried: boolean): void {
    this.#causes.set(code, (this.#causes.get(code) ?? 0) + 1);
    if (isRetried) this.#retries += 1;
  }

  get cost(): number {
    return this.#cost;
  }

  /** What an attempt costs on the average; undefined as long as none was paid for. */
  get usualCost(): number | undefined {
    return this.#priced === 0 ? undefined : this.#cost / this.#priced;
  }

  progress(running: number, window: number): BatchProgress {
    const { passed, failed, refused, infra } = this.#counts;
    const done = passed + failed + refused + infra;
    const now = performance.now();
    const [first] = this.#endings;
    const seconds = first === undefined ? 0 : (now - first) / 1000;
    const rate = this.#endings.length < 2 || seconds <= 0 ? undefined : this.#endings.length / seconds;
    return {
      total: this.#total,
      done,
      passed,
      failed,
      refused,
      infra,
      running,
      waiting: this.#total - done - running,
      causes: Object.fromEntries(this.#causes),
      retries: this.#retries,
      window,
      ...(rate !== undefined && { rate, remainingMs: ((this.#total - done) / rate) * 1000 }),
      ...(this.#hasCost && { costUsd: this.#cost }),
      elapsedMs: now - this.#start,
    };
  }
}
