import { SandboxError, toSandboxError } from "../../contracts/errors.js";
import { createLimit } from "../util/limit.js";
import type { FileTask } from "./task-file.js";
import type { Batch, SandboxManager } from "./types.js";

/** How far a task of a run is. */
export type TaskStage = "waiting" | "starting" | "running" | "stopping" | "done" | "failed";

/** The result of one task. Either its command ended, or `error` says why it didn't. */
export interface TaskResult {
  taskId: string;
  /** Absent when the command didn't run to its end. */
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
  /** The command of tasks that have none of their own. */
  argv?: readonly string[];
  /** How many tasks run at the same time. */
  concurrency: number;
  /** Deadline of commands whose task has none of its own, in milliseconds. */
  timeout?: number;
  signal: AbortSignal;
  onStage?(taskId: string, stage: TaskStage): void;
  /** Awaited before the task counts as done. */
  onResult(result: TaskResult, task: FileTask): Promise<void>;
}

/** The command that a task runs; `invalid_argument` when there is none. */
export function commandOf(task: FileTask, argv: readonly string[] | undefined): string | readonly string[] {
  const command = task.run ?? argv;
  if (command !== undefined && command.length > 0) return command;
  throw new SandboxError("invalid_argument", `The task "${task.setup.taskId}" has nothing to run`, {
    hint: "add run: to the task in the file, or give a command after --",
  });
}

/** Runs every task of a batch, at most `concurrency` at a time. A task that fails doesn't stop the others. */
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
      // A task that the interruption broke has no result, so that the next run repeats it.
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
