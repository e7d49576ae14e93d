import { type BatchRecord, CUT_OFF, type JournalRecord } from "./journal-record.js";
import type { TaskOutcome } from "./types.js";

/** What a journal says about one task. */
export interface TaskState {
  digest: string;
  /** How many attempts were started. */
  attempts: number;
  /** How many of them the infrastructure failed since the task was planned. */
  infraFailures: number;
  /** Whether the last attempt began and did not end. */
  isStarted: boolean;
  /** Absent: not finished. */
  outcome?: TaskOutcome;
  /** Why the infrastructure failed the last attempt, or why the task was refused. */
  failure?: { code: string; message: string };
  ms: number;
  cost: number;
}

/** Everything that a journal says. */
export interface JournalState {
  header: BatchRecord | undefined;
  readonly tasks: Map<string, TaskState>;
  /** Failures of the infrastructure by their codes. */
  readonly causes: Map<string, number>;
  /** How many bytes of the results are acknowledged. */
  resultsEnd: number;
  /** US dollars. */
  cost: number;
}

/** The state of a journal without records. */
export function emptyState(): JournalState {
  return { header: undefined, tasks: new Map(), causes: new Map(), resultsEnd: 0, cost: 0 };
}

/** Adds what a record says. */
export function applyRecord(state: JournalState, record: JournalRecord): void {
  if (record.t === "batch") {
    state.header = record;
    return;
  }
  const task = state.tasks.get(record.task);
  if (record.t === "planned") {
    const { attempts = 0, ms = 0, cost = 0 } = task ?? {};
    state.tasks.set(record.task, { digest: record.digest, attempts, infraFailures: 0, isStarted: false, ms, cost });
    return;
  }
  if (task === undefined) return;
  task.attempts = Math.max(task.attempts, record.attempt);
  task.isStarted = record.t === "started";
  if (record.t === "started") return;
  const { cost = 0, end } = record;
  task.cost += cost;
  state.cost += cost;
  if (end !== undefined) state.resultsEnd = end;
  if (record.t === "finished") {
    task.outcome = record.outcome;
    task.ms = record.ms;
    delete task.failure;
    return;
  }
  const { kind, code, message, final } = record;
  if (code === CUT_OFF && !final) return;
  task.failure = { code, message };
  if (kind === "infra") {
    task.infraFailures += 1;
    state.causes.set(code, (state.causes.get(code) ?? 0) + 1);
  }
  if (final) task.outcome = kind === "infra" ? "infra" : "refused";
}
