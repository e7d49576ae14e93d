import { SandboxError, toSandboxError } from "../../contracts/errors.js";
import { createLimit } from "../util/limit.js";
import type { FileTask } from "./task-file.js";
import type { Batch, SandboxManager } from "./types.js";

/** Where a task of a run is. */
export type TaskStage = "waiting" | "starting" | "running" | "stopping" | "done" | "failed";

/** What came of one task. Either its command ended, or `error` says why it did not. */
export interface TaskResult {
  taskId: string;
  /** Absent when the command did not run to its end. */
  exitCode?: number;
  timedOut?: boolean;
  stdout?: string;
  stderr?: string;
  truncated?: { stdout: boolean; stderr: boolean };
  /** Milliseconds of the command alone. */
  durationMs?: number;
  /** Milliseconds until the task was ready. */
  setupMs?: number;
  error?: { code: string; message: string; hint?: string };
}

/** How tasks are run. */
export interface RunOptions {
  /** What runs in the tasks that do not say it themselves. */
  argv?: readonly string[];
  /** How many tasks there are at one time. */
  concurrency: number;
  /** Deadline of the commands of the tasks that have none of their own. */
  timeout?: number;
  signal: AbortSignal;
  onStage?(taskId: string, stage: TaskStage): void;
  /** Awaited before the task counts as done. */
  onResult(result: TaskResult, task: FileTask): Promise<void>;
}

/** The command that a task runs; a `invalid_argument` when nobody has said one. */
export function commandOf(task: FileTask, argv: readonly string[] | undefined): string | readonly string[] {
  const command = task.run ?? argv;
  if (command !== undefined && command.length > 0) return command;
  throw new SandboxError("invalid_argument", `The task "${task.setup.taskId}" has nothing to run`, {
    hint: "give it a run: in the file, or a command after --",
  });
}

/** Runs every task of a batch, so many at one time; a task that fails does not keep the others from running. */
export async function runTasks(
  manager: SandboxManager,
  batch: Batch,
  tasks: readonly FileTask[],
  opts: RunOptions,
): Promise<void> {
  const limit = createLimit(opts.concurrency);
  const all = tasks.map((task) =>
    limit(async () => {
      if (opts.signal.aborted) return;
      const result = await runOne(manager, batch, task, opts);
      // What an interruption broke is to be done again.
      if (opts.signal.aborted && result.error !== undefined) return;
      await opts.onResult(result, task);
      opts.onStage?.(result.taskId, result.error === undefined ? "done" : "failed");
    }),
  );
  await Promise.all(all);
}

async function runOne(manager: SandboxManager, batch: Batch, task: FileTask, opts: RunOptions): Promise<TaskResult> {
  const { taskId } = task.setup;
  const began = performance.now();
  try {
    const command = commandOf(task, opts.argv);
    opts.onStage?.(taskId, "starting");
    await using running = await batch.setupTask(task.setup, { signal: opts.signal });
    const setupMs = performance.now() - began;
    opts.onStage?.(taskId, "running");
    const timeout = task.timeout ?? opts.timeout;
    const { exitCode, timedOut, stdout, stderr, truncated, durationMs } = await manager.exec(
      running.state.agentContainerId,
      command,
      { signal: opts.signal, env: { GLOVEBOX_TASK_ID: taskId }, ...(timeout !== undefined && { timeout }) },
    );
    opts.onStage?.(taskId, "stopping");
    return { taskId, exitCode, timedOut, stdout, stderr, truncated, durationMs, setupMs };
  } catch (error) {
    const { code, message, hint } = toSandboxError(error);
    return { taskId, error: { code, message, ...(hint !== undefined && { hint }) } };
  }
}
