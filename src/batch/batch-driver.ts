import { SandboxError, toSandboxError } from "../../contracts/errors.js";
import { defined } from "../util/defined.js";
import { isoTime } from "../util/iso-time.js";
import type { Attempt, TaskEnding } from "./attempt.js";
import type { OpenBatch } from "./batch-folder.js";
import { isRefusal, kindOf, mayBeOwn, stopsAll } from "./failure-kind.js";
import { CUT_OFF } from "./journal-record.js";
import type { PlannedTask } from "./plan-tasks.js";
import { Tally } from "./progress.js";
import { Schedule, type ScheduledTask } from "./schedule.js";
import type {
  AttemptStage,
  BatchNote,
  BatchOptions,
  BatchProgress,
  BatchResult,
  BatchStop,
  TaskOutcome,
} from "./types.js";
import { Window } from "./window.js";

const RETRIES = 3;
const BACKOFF = 1000;
const LONGEST_BACKOFF = 60_000;
const PATIENCE = 600_000;
const HOUR = 3_600_000;
/** How many may run before it is known what one costs. */
const UNPRICED = 4;
/** So many refusals of one task in a row are a failure of an attempt: it may be this task that can't be opened. */
const REFUSALS = 20;
/** So many tasks without a result between them fail for a reason that is not theirs. */
const DOUBTFUL = 10;
/** How often to look whether there is memory again, in milliseconds. */
const LOOK_AGAIN = 250;

/** What a driver needs. */
export interface BatchDriverParts {
  readonly batch: OpenBatch;
  readonly tasks: readonly PlannedTask[];
  readonly options: BatchOptions;
  readonly concurrency: number;
  /** Sandboxes that were made for the next attempts of these tasks. */
  readonly adopted: Map<string, string>;
  /** The recipe of the sandbox of a task. */
  recipeOf(task: PlannedTask): string;
  run(task: PlannedTask["task"], attempt: Attempt): Promise<void>;
  /** Whether there is room for one more beside those that run. */
  hasRoom(): boolean;
  /** Whether results wait that nobody has taken. */
  isFull(): boolean;
  onResult(result: BatchResult): void;
  note(note: BatchNote): void;
}

/** Runs the tasks of a batch that are not finished, and writes down what happens to each of them. */
export class BatchDriver {
  readonly #parts: BatchDriverParts;
  readonly #window: Window;
  readonly #tally: Tally;
  readonly #schedule: Schedule;
  /** One for each attempt that runs: a signal that outlives them would remember all of them. */
  readonly #attempts = new Set<AbortController>();
  readonly #running = new Set<Promise<void>>();
  /** Tasks of them that are done: only their sandboxes are being closed. */
  readonly #closing = new Set<string>();
  /** Tasks that failed, since the last result, in a way in which all would fail. */
  readonly #doubtful = new Set<string>();
  /** Set when attempts that run are cut off, too. */
  #cutOff: SandboxError | undefined;
  #fault: Error | undefined;
  #stopped: BatchStop | undefined;
  #wake: () => void = () => undefined;

  constructor(parts: BatchDriverParts) {
    this.#parts = parts;
    this.#window = new Window(parts.concurrency);
    const { state } = parts.batch.journal;
    this.#tally = new Tally(
      parts.tasks.map(({ id }) => id),
      state,
    );
    this.#schedule = new Schedule(parts.tasks.filter(({ id }) => state.tasks.get(id)?.outcome === undefined));
  }

  get progress(): BatchProgress {
    return this.#tally.progress(this.#running.size - this.#closing.size, this.#window.size);
  }

  get stopped(): BatchStop | undefined {
    return this.#stopped;
  }

  /** Looks again whether something can be started: a result was taken. */
  wake(): void {
    this.#wake();
  }

  /** Runs until every task is done, or until nothing more can be started. Throws what stopped it. */
  async run(): Promise<void> {
    const { signal } = this.#parts.options;
    const stop = (): void => this.#stop("aborted");
    if (signal?.aborted === true) stop();
    signal?.addEventListener("abort", stop, { once: true });
    try {
      while (!this.#isOver()) {
        const next = this.#pick();
        if (typeof next === "object") this.#start(next);
        else await this.#sleep(next);
      }
      await Promise.all(this.#running);
    } finally {
      signal?.removeEventListener("abort", stop);
    }
    if (this.#fault !== undefined) throw this.#fault;
  }

  #isOver(): boolean {
    if (this.#cutOff !== undefined) return true;
    return this.#running.size === 0 && (this.#schedule.isEmpty || this.#stopped !== undefined);
  }

  #stop(reason: BatchStop): void {
    this.#stopped ??= reason;
    if (reason === "aborted") this.#abort();
    this.#wake();
  }

  /** Stops everything because of something that is not a task's. */
  #fail(error: Error): void {
    this.#fault ??= error;
    this.#abort(error);
    this.#wake();
  }

  #abort(cause?: Error): void {
    this.#cutOff ??= new SandboxError("aborted", "The batch was stopped", { cause });
    for (const attempt of this.#attempts) attempt.abort(this.#cutOff);
  }

  /** The next task to start, or how long to wait, in milliseconds: undefined until something ends. */
  #pick(): ScheduledTask | number | undefined {
    const { size } = this.#running;
    if (this.#stopped !== undefined || size >= this.#window.size || this.#parts.isFull()) return undefined;
    const pause = this.#window.pause();
    if (pause > 0) return pause;
    if (size > 0 && !this.#parts.hasRoom()) return LOOK_AGAIN;
    if (!this.#isAffordable()) return undefined;
    return this.#schedule.next() ?? this.#schedule.pause();
  }

  /** Whether one more may be started, as far as it is known what one costs. */
  #isAffordable(): boolean {
    const { maxCost } = this.#parts.options;
    if (maxCost === undefined) return true;
    const { cost, usualCost } = this.#tally;
    const usual = usualCost ?? maxCost / UNPRICED;
    if (cost + (this.#running.size + 1) * usual <= maxCost * (1 + Number.EPSILON)) return true;
    if (this.#running.size === 0) this.#stop("max-cost");
    return false;
  }

  async #sleep(time: number | undefined): Promise<void> {
    if (this.#isOver()) return;
    await new Promise<void>((resolve) => {
      const timer = time === undefined ? undefined : setTimeout(resolve, Math.max(1, time));
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #start(waiting: ScheduledTask): void {
    this.#stage(waiting.id, "starting");
    const running = this.#attempt(waiting)
      .catch((error: unknown) => this.#fail(toSandboxError(error)))
      .finally(() => {
        this.#running.delete(running);
        this.#closing.delete(waiting.id);
        this.#report();
        this.#wake();
      });
    this.#running.add(running);
    this.#report();
  }

  /** Rejects only for what stops the whole batch. */
  async #attempt(waiting: ScheduledTask): Promise<void> {
    const { task, id } = waiting;
    const { batch, options, adopted, note, recipeOf } = this.#parts;
    const { journal } = batch;
    const number = (journal.state.tasks.get(id)?.attempts ?? 0) + 1;
    const began = performance.now();
    // Somebody who was told that it starts may have stopped everything.
    if (this.#cutOff !== undefined) return;
    const controller = new AbortController();
    this.#attempts.add(controller);
    let isOpening = true;
    let hasEnded = false;
    let spent: number | undefined;
    const { pricePerHour } = options;
    const cost = (): number | undefined =>
      pricePerHour === undefined ? spent : (spent ?? 0) + ((performance.now() - began) / HOUR) * pricePerHour;
    const attempt: Attempt = {
      number,
      batchId: batch.id,
      recipe: recipeOf(waiting),
      options,
      paths: batch.paths,
      signal: controller.signal,
      adopted: take(adopted, id),
      note,
      started: async (resource) => {
        isOpening = false;
        this.#window.opened();
        this.#wake();
        this.#stage(id, "running");
        await orFail(journal.add({ t: "started", task: id, attempt: number, resource }));
      },
      spent: (usd) => {
        spent = usd;
      },
      ended: async (ending) => {
        if (hasEnded) throw new SandboxError("internal", `The task "${id}" has ended twice`);
        hasEnded = true;
        this.#stage(id, "stopping");
        await this.#finish(id, number, { ...ending, ...defined({ costUsd: cost() }) });
      },
    };
    try {
      await this.#parts.run(task, attempt);
      if (!hasEnded) throw new SandboxError("internal", `The task "${id}" has no result`);
    } catch (error) {
      if (error instanceof JournalFault) throw error.cause;
      const failure = toSandboxError(error);
      if (hasEnded) note({ type: "warning", message: failure.message, taskId: id, code: failure.code });
      else if (this.#cutOff !== undefined) await this.#cut(id, number, isOpening ? undefined : cost());
      else await this.#failed(waiting, number, { failure, isOpening, began, cost: isOpening ? undefined : cost() });
    } finally {
      this.#attempts.delete(controller);
    }
  }

  /** Writes down what an attempt has cost that the batch cut off. It is no failure, so it takes no retry. */
  async #cut(task: string, attempt: number, cost: number | undefined): Promise<void> {
    if (cost === undefined) return;
    this.#tally.spend(cost);
    const { message } = this.#cutOff ?? { message: "" };
    const record = { t: "failed", task, attempt, kind: "infra", code: CUT_OFF, message, final: false, cost } as const;
    // If the journal is what failed, it has no place for this either.
    await this.#parts.batch.journal.add(record).catch(() => undefined);
  }

  async #finish(id: string, attempt: number, ending: TaskEnding): Promise<void> {
    const { outcome, durationMs = 0, costUsd } = ending;
    const result: BatchResult = { taskId: id, attempt, ...ending, endedAt: isoTime() };
    if (outcome === "refused") throw new SandboxError("internal", "A task that ran can't be refused");
    await orFail(
      this.#parts.batch.journal.addResult(result, (end) => ({
        t: "finished",
        task: id,
        attempt,
        outcome,
        ms: Math.round(durationMs),
        ...(costUsd !== undefined && { cost: costUsd }),
        end,
      })),
    );
    this.#doubtful.clear();
    this.#tally.spend(costUsd);
    this.#done(id, outcome);
    this.#stage(id, outcome);
    this.#parts.onResult(result);
    this.#report();
  }

  async #failed(
    waiting: ScheduledTask,
    attempt: number,
    { failure, isOpening, began, cost }: FailedAttempt,
  ): Promise<void> {
    const { id } = waiting;
    const { options, note } = this.#parts;
    const { code, message } = failure;
    if (stopsAll(failure, isOpening) && !this.#isOneOfFew(waiting, failure)) throw failure;
    this.#tally.spend(cost);
    if (isRefusal(failure, isOpening) && waiting.refusals + 1 < REFUSALS) return this.#refused(waiting, failure, began);
    if (kindOf(failure) === "task") return await this.#refuse(id, attempt, failure, cost);
    const { journal } = this.#parts.batch;
    const failures = (journal.state.tasks.get(id)?.infraFailures ?? 0) + 1;
    const final = failures > (options.retries ?? RETRIES);
    const record = {
      t: "failed",
      task: id,
      attempt,
      kind: "infra",
      code,
      message: message.slice(0, 500),
      final,
    } as const;
    await orFail(journal.add({ ...record, ...(cost !== undefined && { cost }) }));
    this.#tally.addCause(code, !final);
    note({ type: final ? "infra" : "retry", message, taskId: id, code });
    // It may be too much for the service.
    if (code === "unavailable") this.#window.refused();
    this.#stage(id, final ? "infra" : "waiting");
    if (final) this.#done(id, "infra");
    else {
      const pause = Math.min(LONGEST_BACKOFF, (options.backoff ?? BACKOFF) * 2 ** (failures - 1));
      this.#schedule.again({ ...waiting, refusals: 0 }, pause * (0.5 + Math.random() / 2));
    }
  }

  /** Whether a failure that would stop everything may be only this task's: so few others had one since the last result. */
  #isOneOfFew({ id, task }: ScheduledTask, failure: SandboxError): boolean {
    this.#doubtful.add(id);
    return mayBeOwn(task, failure) && this.#doubtful.size < DOUBTFUL;
  }

  /** The backend takes no more at the moment. That says nothing about the task, which waits. */
  #refused(waiting: ScheduledTask, failure: SandboxError, askedAt: number): void {
    const { options, note } = this.#parts;
    const { code, message } = failure;
    this.#window.refused(performance.now(), askedAt);
    this.#stage(waiting.id, "waiting");
    this.#tally.addCause(code, true);
    note({ type: "retry", message, taskId: waiting.id, code });
    if (this.#window.isHopeless(options.patience ?? PATIENCE)) throw failure;
    this.#schedule.again({ ...waiting, refusals: waiting.refusals + 1 }, 0);
  }

  /** The task itself is wrong: that is its result. */
  async #refuse(id: string, attempt: number, { code, message, hint }: SandboxError, cost?: number): Promise<void> {
    const error = { code, message, ...(hint !== undefined && { hint }) };
    const more = cost === undefined ? {} : { costUsd: cost };
    const result: BatchResult = { taskId: id, outcome: "refused", attempt, error, ...more, endedAt: isoTime() };
    const record = {
      t: "failed",
      task: id,
      attempt,
      kind: "task",
      code,
      message: message.slice(0, 500),
      final: true,
    } as const;
    await orFail(
      this.#parts.batch.journal.addResult(result, (end) => ({ ...record, ...(cost !== undefined && { cost }), end })),
    );
    this.#done(id, "refused");
    this.#stage(id, "refused");
    this.#parts.onResult(result);
  }

  #done(id: string, outcome: TaskOutcome): void {
    this.#tally.add(outcome);
    this.#closing.add(id);
  }

  #stage(id: string, stage: AttemptStage): void {
    this.#parts.options.onStage?.(id, stage);
  }

  #report(): void {
    this.#parts.options.onProgress?.(this.progress);
  }
}

interface FailedAttempt {
  readonly failure: SandboxError;
  /** Whether its sandbox was not there yet. */
  readonly isOpening: boolean;
  /** On the clock of `performance.now`. */
  readonly began: number;
  readonly cost: number | undefined;
}

/** The journal could not be written. That is no failure of the attempt in which it happened. */
class JournalFault extends Error {}

async function orFail(writing: Promise<void>): Promise<void> {
  await writing.catch((cause: unknown) => {
    throw new JournalFault("the journal could not be written", { cause });
  });
}

function take(map: Map<string, string>, key: string): string | undefined {
  const value = map.get(key);
  map.delete(key);
  return value;
}
