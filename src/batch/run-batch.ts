import type { Backend } from "../../contracts/backend.js";
import { SandboxError, toSandboxError } from "../../contracts/errors.js";
import { writeFileAtomic } from "../machine/atomic-file.js";
import { assertBackend, backendOf, chooseBackend } from "../sandbox.js";
import { defined } from "../util/defined.js";
import { type Attempt, labelsOf } from "./attempt.js";
import { BatchDriver } from "./batch-driver.js";
import { type OpenBatch, openBatch } from "./batch-folder.js";
import { batchPage } from "./batch-page.js";
import { checkBatchOptions } from "./check-options.js";
import { recipesOf, removeLeft, settleLeftSandboxes } from "./left-sandboxes.js";
import { hasRoom, usualConcurrency } from "./machine-room.js";
import { OncePerKey } from "./once-per-key.js";
import { writePlan } from "./plan-file.js";
import { type PlannedTask, planTasks } from "./plan-tasks.js";
import { runBlueprintTask } from "./run-blueprint.js";
import { runCommand } from "./run-command.js";
import { ContainerTasks } from "./run-containers.js";
import type {
  BatchNote,
  BatchOptions,
  BatchProgress,
  BatchResult,
  BatchRun,
  BatchStop,
  ContainerTask,
} from "./types.js";

/** Results that nobody has taken yet; more of them stop the batch for a while. */
const UNTAKEN = 256;
/** So much output of them does, too: 16 MiB. */
const UNTAKEN_BYTES = 16 << 20;

/**
 * Runs many tasks, each in a sandbox of its own, and writes down what happens to them, so that another call with the same `out` goes on after any crash:
 * what is finished is not run again. It begins when you iterate over it, and stops when you leave the loop.
 */
export function runBatch(options: BatchOptions): BatchRun {
  checkBatchOptions(options);
  const planned = planTasks(options);
  return new RunningTasks(options, planned);
}

class RunningTasks implements BatchRun {
  readonly #options: BatchOptions;
  readonly #planned: ReturnType<typeof planTasks>;
  #driver: BatchDriver | undefined;
  #isUsed = false;

  constructor(options: BatchOptions, planned: ReturnType<typeof planTasks>) {
    this.#options = options;
    this.#planned = planned;
  }

  get progress(): BatchProgress {
    return this.#driver?.progress ?? nothingYet(this.#planned.tasks.length);
  }

  get stopped(): BatchStop | undefined {
    return this.#driver?.stopped;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<BatchResult, void, undefined> {
    if (this.#isUsed)
      throw new SandboxError("invalid_argument", "A batch can be iterated over once", { hint: "call runBatch again" });
    this.#isUsed = true;
    const leaving = new AbortController();
    const { signal: asked } = this.#options;
    const signal = asked === undefined ? leaving.signal : AbortSignal.any([asked, leaving.signal]);
    let mistake: { readonly error: unknown } | undefined;
    const told = guarded(this.#options, (error) => {
      mistake ??= { error };
      leaving.abort();
    });
    const options = { ...this.#options, ...told, signal };
    const { backend, concurrency, memory } = await decide(options, this.#planned.tasks);
    const batch = await openBatch(options, this.#planned);
    try {
      const changed = await writePlan(batch.paths.plan, options);
      const hasResults = [...batch.journal.state.tasks.values()].some(({ outcome }) => outcome !== undefined);
      if (changed.length > 0 && hasResults) {
        const message = `the results that are there were made with another ${changed.join(", ")}; they stay as they are`;
        options.onNote?.({ type: "warning", message });
      }
      yield* this.#run(batch, options, { backend, concurrency, memory }, () => leaving.abort());
      if (mistake !== undefined) throw mistake.error;
    } finally {
      await this.#writePage(batch).catch((error: unknown) => {
        options.onNote?.({ type: "warning", message: `the page was not written: ${toSandboxError(error).message}` });
      });
      await batch.close();
    }
  }

  async #writePage({ paths, journal: { state } }: OpenBatch): Promise<void> {
    await writeFileAtomic(paths.page, await batchPage(paths, state, this.#planned.tasks, this.#options.sandbox?.env));
  }

  async *#run(
    batch: OpenBatch,
    options: BatchOptions,
    decided: Decided,
    leave: () => void,
  ): AsyncGenerator<BatchResult, void, undefined> {
    const note = (each: BatchNote): void => options.onNote?.(each);
    const { state } = batch.journal;
    const recipes = await recipesOf(this.#planned.tasks, options);
    const adopted = batch.isResumed
      ? await settleLeftSandboxes(batch.id, state, recipes, note)
      : new Map<string, string>();
    const isOpen = ({ id }: PlannedTask): boolean => state.tasks.get(id)?.outcome === undefined;
    const open = this.#planned.tasks.filter(isOpen);
    const containers = new ContainerTasks(
      open.flatMap(({ task }) => ("setup" in task ? [task as ContainerTask] : [])),
      options,
      note,
    );
    try {
      await containers.prepare(options.signal);
      yield* this.#drive(batch, options, decided, { containers, adopted, recipes, leave });
    } finally {
      // Stopped before their tasks were started again.
      await Promise.all([...adopted.values()].map((id) => removeLeft(id, note)));
      await containers.close();
    }
  }

  async *#drive(
    batch: OpenBatch,
    options: BatchOptions,
    { backend, concurrency, memory }: Decided,
    { containers, adopted, recipes, leave }: Prepared,
  ): AsyncGenerator<BatchResult, void, undefined> {
    const images = new OncePerKey();
    const queue: BatchResult[] = [];
    let waiting = 0;
    let arrived = (): void => undefined;
    const driver = new BatchDriver({
      batch,
      tasks: this.#planned.tasks,
      options,
      concurrency,
      adopted,
      recipeOf: ({ id }) => recipes.get(id) ?? "",
      note: (each) => options.onNote?.(each),
      run: (task, attempt: Attempt) => {
        if ("setup" in task) return containers.run(task, attempt);
        if ("blueprint" in task) return runBlueprintTask(task, attempt, images);
        if (backend === undefined) throw new SandboxError("internal", "No backend was chosen");
        return runCommand(task, attempt, backend, images);
      },
      hasRoom: () => backend?.runsHere !== true || hasRoom(memory),
      isFull: () => queue.length >= UNTAKEN || waiting >= UNTAKEN_BYTES,
      onResult: (result) => {
        queue.push(result);
        waiting += sizeOf(result);
        arrived();
      },
    });
    this.#driver = driver;
    let isOver = false;
    const running = driver.run().finally(() => {
      isOver = true;
      arrived();
    });
    // It is awaited below, after the results that came before it failed.
    running.catch(() => undefined);
    try {
      for (;;) {
        const result = queue.shift();
        if (result !== undefined) {
          waiting -= sizeOf(result);
          driver.wake();
          yield result;
        } else if (isOver) break;
        else {
          await new Promise<void>((resolve) => {
            arrived = resolve;
          });
        }
      }
      await running;
    } finally {
      leave();
      await running.catch(() => undefined);
    }
  }
}

/** About how many bytes of memory a result takes. */
function sizeOf({ stdout = "", stderr = "" }: BatchResult): number {
  return stdout.length + stderr.length;
}

type Callbacks = Pick<BatchOptions, "onProgress" | "onStage" | "onNote">;

/** The callbacks of a user. What they throw is theirs: it stops the batch cleanly, wherever it was. */
function guarded({ onProgress, onStage, onNote }: Callbacks, onThrow: (error: unknown) => void): Callbacks {
  const guard =
    <A extends unknown[]>(callback: (...args: A) => void) =>
    (...args: A): void => {
      try {
        callback(...args);
      } catch (error) {
        onThrow(error);
      }
    };
  return defined({
    onProgress: onProgress && guard(onProgress),
    onStage: onStage && guard(onStage),
    onNote: onNote && guard(onNote),
  });
}

interface Prepared {
  readonly containers: ContainerTasks;
  readonly adopted: Map<string, string>;
  readonly recipes: ReadonlyMap<string, string>;
  leave(): void;
}

interface Decided {
  /** Absent: no task is a command. */
  readonly backend: Backend | undefined;
  readonly concurrency: number;
  readonly memory: number | undefined;
}

/** Decides how the tasks are run, and refuses what the backend can never do. */
async function decide(options: BatchOptions, tasks: readonly PlannedTask[]): Promise<Decided> {
  const { sandbox = {} } = options;
  const hasCommands = tasks.some(({ task }) => !("setup" in task || "blueprint" in task));
  const hasContainers = tasks.some(({ task }) => "setup" in task);
  const name = options.backend ?? chooseBackend(process.env);
  const memory = sandbox.limits?.memory;
  const backend = hasCommands ? await backendOf(name) : undefined;
  const labels = {
    ...sandbox.labels,
    ...labelsOf({ batchId: "0".repeat(16), number: 1, recipe: "0".repeat(32) }, "any"),
  };
  if (backend !== undefined) await assertBackend(name, { ...sandbox, labels });
  const isHere = hasContainers || (backend ?? (await backendOf(name))).runsHere === true;
  return { backend, memory, concurrency: options.concurrency ?? usualConcurrency(isHere, memory) };
}

function nothingYet(total: number): BatchProgress {
  return {
    total,
    done: 0,
    passed: 0,
    failed: 0,
    refused: 0,
    infra: 0,
    running: 0,
    waiting: total,
    causes: {},
    retries: 0,
    window: 0,
    elapsedMs: 0,
  };
}
