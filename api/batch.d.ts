type AttemptStage = "starting" | "running" | "stopping" | "waiting" | TaskOutcome;

interface BatchNote {
  type: "progress" | "warning" | "leak" | "retry" | "infra";
  message: string;
  taskId?: string;
  code?: string;
}

interface BatchOptions {
  tasks: readonly BatchTask[];
  out: string;
  backend?: string;
  argv?: readonly string[];
  sandbox?: Omit<OpenOptions, "backend" | "id" | "name" | "ifExists" | "keep" | "signal" | "ttl">;
  concurrency?: number;
  retries?: number;
  backoff?: number;
  patience?: number;
  maxCost?: number;
  pricePerHour?: number;
  shard?: BatchShard;
  timeout?: number;
  maxOutput?: number;
  ifChanged?: "refuse" | "run";
  retry?: readonly TaskOutcome[];
  batchIdPrefix?: string;
  trust?: boolean;
  signal?: AbortSignal;
  onProgress?(progress: BatchProgress): void;
  onStage?(taskId: string, stage: AttemptStage): void;
  onNote?(note: BatchNote): void;
}

interface BatchPlan {
  readonly version: typeof VERSION;
  readonly writtenAt: string;
  readonly options: Omit<BatchOptions, "out" | "signal" | "onProgress" | "onStage" | "onNote" | "retry">;
  readonly again: readonly string[];
}

interface BatchProgress {
  total: number;
  done: number;
  passed: number;
  failed: number;
  refused: number;
  infra: number;
  running: number;
  waiting: number;
  causes: Readonly<Record<string, number>>;
  retries: number;
  window: number;
  rate?: number;
  remainingMs?: number;
  costUsd?: number;
  elapsedMs: number;
}

interface BatchResult
  extends Partial<Pick<ExecResult, "exitCode" | "timedOut" | "stdout" | "stderr" | "truncated" | "durationMs">> {
  taskId: string;
  outcome: Exclude<TaskOutcome, "infra">;
  attempt: number;
  setupMs?: number;
  costUsd?: number;
  resource?: string;
  run?: {
    status: string;
    branch?: string;
    pullRequest?: string;
  };
  error?: {
    code: string;
    message: string;
    hint?: string;
  };
  endedAt: string;
}

interface BatchRun extends AsyncIterable<BatchResult> {
  readonly progress: BatchProgress;
  readonly stopped: BatchStop | undefined;
}

interface BatchShard {
  index: number;
  count: number;
}

interface BatchStatus
  extends Pick<BatchProgress, "total" | "done" | "passed" | "failed" | "refused" | "infra" | "causes" | "costUsd"> {
  id: string;
  folder: string;
  createdAt: string;
  shard?: string;
  started: number;
  pid?: number;
  problems: {
    taskId: string;
    outcome: "refused" | "infra";
    code: string;
    message: string;
  }[];
}

type BatchStop = "aborted" | "max-cost";

type BatchTask = CommandTask | ContainerTask | BlueprintTask;

interface BlueprintTask {
  readonly id: string;
  readonly blueprint: string;
  readonly repo: string;
  readonly intent: string;
  readonly inputs?: Readonly<Record<string, string | number | boolean>>;
  readonly ref?: string;
  readonly agent?: string;
  readonly model?: string;
  readonly timeout?: number;
}

interface CommandTask {
  readonly id: string;
  readonly run?: string | readonly string[];
  readonly image?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly stdin?: string;
  readonly files?: Readonly<Record<string, string>>;
  readonly timeout?: number;
}

interface ContainerTask {
  readonly id: string;
  readonly setup: TaskSetup;
  readonly networkEnabled?: boolean;
  readonly run?: string | readonly string[];
  readonly timeout?: number;
}

interface ReadTasksOptions {
  trust?: boolean;
}

type TaskOutcome = "passed" | "failed" | "refused" | "infra";

declare const VERSION = 1;

declare function readBatch(out: string): Promise<BatchStatus>;

declare function readBatchOptions(
  out: string,
  given?: Pick<BatchOptions, "sandbox">,
): Promise<
  BatchPlan["options"] & {
    out: string;
  }
>;

declare function readBatchPage(out: string): Promise<string>;

declare function readResults(...outs: readonly string[]): AsyncGenerator<BatchResult, void, undefined>;

declare function readTasks(
  path: string,
  opts?: ReadTasksOptions,
): Promise<Pick<BatchOptions, "tasks" | "batchIdPrefix">>;

declare function runBatch(options: BatchOptions): BatchRun;

export {
  AttemptStage,
  BatchNote,
  BatchOptions,
  BatchProgress,
  BatchResult,
  BatchRun,
  BatchShard,
  BatchStatus,
  BatchStop,
  BatchTask,
  BlueprintTask,
  CommandTask,
  ContainerTask,
  type ReadTasksOptions,
  TaskOutcome,
  readBatch,
  readBatchOptions,
  readBatchPage,
  readResults,
  readTasks,
  runBatch,
};
