import { SandboxError, toSandboxError } from "../../contracts/errors.js";
import { type Batch, createSandboxManager, placeOptions, type SandboxManager } from "../tasks.js";
import { defined } from "../util/defined.js";
import { type Attempt, MAX_OUTPUT } from "./attempt.js";
import { commandOf } from "./plan-tasks.js";
import type { BatchNote, BatchOptions, ContainerTask } from "./types.js";

/** Runs tasks that are containers. Their images are prepared once, before the first of them. */
export class ContainerTasks {
  readonly #tasks: readonly ContainerTask[];
  readonly #options: BatchOptions;
  readonly #note: (note: BatchNote) => void;
  readonly #opened = new Map<boolean, { manager: SandboxManager; batch: Batch }>();

  /** `tasks` are those that are still to be run. */
  constructor(tasks: readonly ContainerTask[], options: BatchOptions, note: (note: BatchNote) => void) {
    this.#tasks = tasks;
    this.#options = options;
    this.#note = note;
  }

  /** Prepares their images. One that can't be had is the failure of the tasks that need it, and of no other. */
  async prepare(signal: AbortSignal | undefined): Promise<void> {
    for (const networkEnabled of new Set(this.#tasks.map((task) => task.networkEnabled ?? false))) {
      this.#opened.set(networkEnabled, await this.#prepare(networkEnabled, signal));
    }
  }

  async run(task: ContainerTask, attempt: Attempt): Promise<void> {
    const { options, signal } = attempt;
    const began = performance.now();
    const opened = this.#opened.get(task.networkEnabled ?? false);
    if (opened === undefined)
      throw new SandboxError("internal", `The images of the task "${task.id}" were not prepared`);
    const { manager, batch } = opened;
    await using running = await batch.setupTask(task.setup, { signal });
    const setupMs = performance.now() - began;
    const { agentContainerId: resource } = running.state;
    await attempt.started(resource);
    const timeout = task.timeout ?? options.timeout;
    const { exitCode, timedOut, stdout, stderr, truncated, durationMs } = await manager.exec(
      resource,
      commandOf(task, options.argv),
      {
        signal,
        env: { GLOVEBOX_TASK_ID: task.id },
        maxOutput: options.maxOutput ?? MAX_OUTPUT,
        ...defined({ timeout }),
      },
    );
    const outcome = exitCode === 0 && !timedOut ? "passed" : "failed";
    await attempt.ended({ outcome, exitCode, timedOut, stdout, stderr, truncated, durationMs, setupMs, resource });
  }

  /** Removes what is left of them. */
  async close(): Promise<void> {
    for (const { batch } of this.#opened.values()) await batch.teardown();
  }

  async #prepare(
    networkEnabled: boolean,
    signal: AbortSignal | undefined,
  ): Promise<{ manager: SandboxManager; batch: Batch }> {
    const { backend, batchIdPrefix, sandbox = {} } = this.#options;
    const manager = createSandboxManager({
      ...defined({ backend, batchIdPrefix }),
      ...placeOptions(backend, sandbox as Readonly<Record<string, unknown>>),
      networkEnabled,
      onEvent: ({ type, message, taskId, progress }) => {
        const of = taskId === undefined ? {} : { taskId };
        const share = progress === undefined ? "" : ` (${Math.round((100 * progress.current) / progress.total)} %)`;
        if (type.startsWith("image-")) this.#note({ type: "progress", message: `${message}${share}`, ...of });
        if (type === "warning" || type === "leak") this.#note({ type, message, ...of });
      },
    });
    const setups = this.#tasks.filter((task) => (task.networkEnabled ?? false) === networkEnabled);
    const prepare = (tasks: readonly ContainerTask[]): Promise<Batch> =>
      manager.setupBatch(
        tasks.map(({ setup }) => setup),
        defined({ signal }),
      );
    const batch = await prepare(setups).catch(async (error: unknown) => {
      const failure = toSandboxError(error);
      if (signal?.aborted === true || failure.code === "no_space") throw failure;
      this.#note({ type: "warning", message: failure.message, code: failure.code });
      // Each task asks again for what it needs; what is there by now is not made anew.
      return await prepare([]);
    });
    return { manager, batch };
  }
}
