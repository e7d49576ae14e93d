import type { ExecResult } from "../../contracts/types.js";
import type { OpenOptions } from "../sandbox.js";
import type { TaskSetup } from "../tasks.js";

/** The nouns of batches. Times are milliseconds and sizes are bytes unless a name says otherwise. */

/** A command in a sandbox of its own. */
export interface CommandTask {
  /** Unique in its batch. */
  readonly id: string;
  /** A text for `/bin/sh`, or a program and its arguments. Default: `argv` of the batch. */
  readonly run?: string | readonly string[];
  /** Image of its sandbox. Default: that of the batch. */
  readonly image?: string;
  /** Added to the variables of the batch. */
  readonly env?: Readonly<Record<string, string>>;
  /** Work directory of the command, relative to the sandbox's. */
  readonly cwd?: string;
  /** Standard input. Default: empty. */
  readonly stdin?: string;
  /** Files to write first, by their paths. */
  readonly files?: Readonly<Record<string, string>>;
  /** Deadline of the command. Default: `timeout` of the batch. */
  readonly timeout?: number;
}

/** A command in the agent's container of a task with services. */
export interface ContainerTask {
  readonly id: string;
  readonly setup: TaskSetup;
  /** Whether it may reach other machines. Default false. */
  readonly networkEnabled?: boolean;
  readonly run?: string | readonly string[];
  readonly timeout?: number;
}

/** A run of a blueprint. */
export interface BlueprintTask {
  readonly id: string;
  /** Name or path. */
  readonly blueprint: string;
  /** A path, `org/repo` or a URL. */
  readonly repo: string;
  readonly intent: string;
  readonly inputs?: Readonly<Record<string, string | number | boolean>>;
  readonly ref?: string;
  readonly agent?: string;
  readonly model?: string;
  /** Deadline of the whole run. */
  readonly timeout?: number;
}

/** One task of a batch. */
export type BatchTask = CommandTask | ContainerTask | BlueprintTask;

/** How a task ended. `refused`: nothing was wrong but the task itself. `infra`: the infrastructure failed it, which is no result. */
export type TaskOutcome = "passed" | "failed" | "refused" | "infra";

/** The one result of a task. */
export interface BatchResult
  extends Partial<Pick<ExecResult, "exitCode" | "timedOut" | "stdout" | "stderr" | "truncated" | "durationMs">> {
  taskId: string;
  outcome: Exclude<TaskOutcome, "infra">;
  /** Which attempt it was, from 1. */
  attempt: number;
  /** Milliseconds until the sandbox was ready. */
  setupMs?: number;
  /** US dollars, if known. */
  costUsd?: number;
  /** Id of the sandbox or the run. */
  resource?: string;
  /** What the run of a blueprint led to. */
  run?: { status: string; branch?: string; pullRequest?: string };
  /** Why a refused task could not be run. */
  error?: { code: string; message: string; hint?: string };
  /** ISO 8601. */
  endedAt: string;
}

/** How far a batch is. */
export interface BatchProgress {
  total: number;
  /** With a result, or given up because of the infrastructure. */
  done: number;
  passed: number;
  failed: number;
  refused: number;
  /** Tasks given up because of the infrastructure. */
  infra: number;
  running: number;
  waiting: number;
  /** Failures of the infrastructure in this run by their codes, those that were retried included. */
  causes: Readonly<Record<string, number>>;
  /** Attempts that failed because of the infrastructure and were repeated. */
  retries: number;
  /** How many may be open at once now. */
  window: number;
  /** Tasks a second, lately. Absent: not known yet. */
  rate?: number;
  /** Milliseconds, as far as the rate tells. */
  remainingMs?: number;
  /** US dollars so far, where known. */
  costUsd?: number;
  elapsedMs: number;
}

/** Why a batch ended before its last task. */
export type BatchStop = "aborted" | "max-cost";

/** One part of a batch that several machines share. */
export interface BatchShard {
  /** From 1. */
  index: number;
  count: number;
}

/** How far an attempt is. */
export type AttemptStage = "starting" | "running" | "stopping" | "waiting" | TaskOutcome;

/** Options of `runBatch`. */
export interface BatchOptions {
  /** Each with an id of its own. Run them again with the same `out` and only what is not finished is run. */
  tasks: readonly BatchTask[];
  /** Directory of the journal and the results. Made if absent. */
  out: string;
  /** Backend of the sandboxes. Default: as `openSandbox` chooses. Tasks with containers: the default of `createSandboxManager`. */
  backend?: string;
  /** The command of tasks without one. */
  argv?: readonly string[];
  /** How the sandboxes of commands and blueprints are opened. */
  sandbox?: Omit<OpenOptions, "backend" | "id" | "name" | "ifExists" | "keep" | "signal" | "ttl">;
  /** How many are open at once, at most. Default: what the memory and the cores of this machine allow; 100 at a service. */
  concurrency?: number;
  /** How often an attempt that the infrastructure failed is repeated. Default 3. */
  retries?: number;
  /** The first pause before such a repetition; each further one is twice as long. Default 1000. */
  backoff?: number;
  /** How long a backend may refuse every new sandbox before the batch stops. Default 600 000. */
  patience?: number;
  /** Stop starting tasks before they have cost more US dollars. Needs `pricePerHour`, or blueprints, whose agents say what they cost. */
  maxCost?: number;
  /** US dollars for an hour of an open sandbox. */
  pricePerHour?: number;
  /** Only this part of the tasks. */
  shard?: BatchShard;
  /** Deadline of commands whose task has none of its own. Default: that of the sandbox. */
  timeout?: number;
  /** Bytes of output to keep in a result, for each stream. Default 65 536. */
  maxOutput?: number;
  /** `refuse` other tasks than those of the journal, or run the `changed` ones. Default `refuse`. */
  ifChanged?: "refuse" | "run";
  /** Run tasks that ended so once more, though they are finished. Default: none. */
  retry?: readonly TaskOutcome[];
  /** First part of the names of containers that tasks make. Default `workbench`. */
  batchIdPrefix?: string;
  /** Build contexts, blueprints: trust what a repository defines. Default false. */
  trust?: boolean;
  /** Abort it to stop cleanly. */
  signal?: AbortSignal;
  onProgress?(progress: BatchProgress): void;
  onStage?(taskId: string, stage: AttemptStage): void;
  /** What a user should know: warnings, leaks, retries. */
  onNote?(note: BatchNote): void;
}

/** Something that is no result. */
export interface BatchNote {
  type: "progress" | "warning" | "leak" | "retry" | "infra";
  message: string;
  taskId?: string;
  code?: string;
}

/** A batch that runs. Iterate over it for the results of this run, each of them once and after it is on the disk. */
export interface BatchRun extends AsyncIterable<BatchResult> {
  /** How far it is. */
  readonly progress: BatchProgress;
  /** Why it stopped early; undefined while it runs and when it ran to its end. */
  readonly stopped: BatchStop | undefined;
}

/** What the journal of a batch says, whether or not it runs. */
export interface BatchStatus
  extends Pick<BatchProgress, "total" | "done" | "passed" | "failed" | "refused" | "infra" | "causes" | "costUsd"> {
  id: string;
  /** Directory of its files. */
  folder: string;
  /** ISO 8601. */
  createdAt: string;
  /** As in `2/4`. Absent: it is no part of a batch. */
  shard?: string;
  /** Attempts that began and did not end: running, or cut off with their driver. */
  started: number;
  /** The process that runs it. Absent: none on this machine. */
  pid?: number;
  /** Tasks without a result of their own, and why. */
  problems: { taskId: string; outcome: "refused" | "infra"; code: string; message: string }[];
}
