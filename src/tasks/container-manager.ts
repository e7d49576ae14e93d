import { availableParallelism } from "node:os";
import type { ContainerEngine } from "../../contracts/container-engine.js";
import { SandboxError, toSandboxError } from "../../contracts/errors.js";
import type { ExecResult } from "../../contracts/types.js";
import { createLimit } from "../util/limit.js";
import {
  callback,
  check,
  type Fields,
  flag,
  invalidArgument,
  object,
  type Schema,
  text,
  whole,
} from "../util/schema.js";
import { shellQuote } from "../util/shell.js";
import { checkSetup, command } from "./check-setup.js";
import { createTaskEmit } from "./emit.js";
import { planImages, usesOf } from "./image-plan.js";
import { newBatchId, batchIdPrefix as prefix } from "./names.js";
import { RunningBatch } from "./running-batch.js";
import { underPolicy } from "./task-policy.js";
import type {
  Batch,
  ManagerSettings,
  SandboxManager,
  SandboxState,
  SetupOptions,
  Task,
  TaskExecOptions,
  TaskSetup,
} from "./types.js";

const CONTAINERS_PER_CORE = 4;

/** What `ManagerSettings` may be. */
export const managerFields: Fields<ManagerSettings> = {
  networkEnabled: flag,
  batchIdPrefix: prefix,
  concurrency: whole(1, 1024),
  verifyOnly: flag,
  onEvent: callback(),
};
const managerSettings: Schema<ManagerSettings> = object(managerFields);

/** Creates a manager that runs tasks on a container engine. `open` is called for each batch, which closes the engine. */
export function createContainerManager(
  open: () => ContainerEngine | Promise<ContainerEngine>,
  settings: ManagerSettings = {},
): SandboxManager {
  check(settings, managerSettings, "options");
  return new ContainerManager(open, settings);
}

class ContainerManager implements SandboxManager {
  readonly #open: () => ContainerEngine | Promise<ContainerEngine>;
  readonly #settings: ManagerSettings;
  readonly #limit: <T>(work: () => Promise<T>) => Promise<T>;
  readonly #batches = new Set<RunningBatch>();

  constructor(open: () => ContainerEngine | Promise<ContainerEngine>, settings: ManagerSettings) {
    this.#open = open;
    this.#settings = settings;
    this.#limit = createLimit(settings.concurrency ?? CONTAINERS_PER_CORE * availableParallelism());
  }

  async setupBatch(tasks: readonly TaskSetup[], opts: SetupOptions = {}): Promise<Batch> {
    const { networkEnabled = false, batchIdPrefix = "workbench", verifyOnly = false, onEvent } = this.#settings;
    if (!Array.isArray(tasks)) throw invalidArgument("tasks", "an array", tasks);
    tasks.forEach((task: unknown, index) => {
      checkSetup(task, `tasks[${index}]`, networkEnabled);
    });
    planImages(usesOf(tasks));
    const batchId = newBatchId(batchIdPrefix);
    const engine = await this.#open();
    try {
      for (const task of tasks) await underPolicy(engine.name, task, networkEnabled);
    } catch (error) {
      engine.close();
      throw toSandboxError(error, { backend: engine.name, operation: "setupBatch" });
    }
    const emit = createTaskEmit(batchId, onEvent);
    const batch = new RunningBatch({
      batchId,
      engine,
      networkEnabled,
      verifyOnly,
      limit: this.#limit,
      emit,
      onClosed: (gone) => this.#batches.delete(gone),
    });
    try {
      const [failure, fault] = await Promise.all([
        failureOf(batch.prepare(tasks, opts.signal)),
        failureOf(engine.sweep()),
      ]);
      if (failure !== undefined) throw failure;
      // Leftovers of dead managers that cannot be removed don't stop a batch. An engine that doesn't answer does.
      if (fault?.code === "unavailable" || fault?.code === "permission_denied") throw fault;
      if (fault !== undefined) emit("warning", fault.message);
    } catch (error) {
      await batch.teardown();
      if (opts.signal?.aborted)
        throw new SandboxError("aborted", "The setup of the batch was aborted", { cause: error });
      throw toSandboxError(error, { backend: engine.name, operation: "setupBatch" });
    }
    this.#batches.add(batch);
    return batch;
  }

  async setupTask(setup: TaskSetup, opts: SetupOptions = {}): Promise<Task> {
    const [batch, another] = this.#batches;
    if (batch === undefined) throw outside("setupTask");
    if (another !== undefined) {
      throw new SandboxError(
        "conflict",
        "Several batches are open, so the manager cannot tell which one the task belongs to",
        {
          retryable: false,
          hint: "call batch.setupTask instead",
        },
      );
    }
    return await batch.setupTask(setup, opts);
  }

  async exec(containerId: string, cmd: string | readonly string[], opts: TaskExecOptions = {}): Promise<ExecResult> {
    check(containerId, text, "containerId");
    check(cmd, command, "cmd");
    const { member } = this.#find(containerId, "exec");
    const { shellPath, ...rest } = opts;
    const { sandbox } = member.container;
    if (typeof cmd === "string") return await sandbox.shell(cmd, opts);
    if (shellPath !== undefined) return await sandbox.shell(shellQuote(cmd), opts);
    return await sandbox.exec({ argv: cmd, ...rest });
  }

  async cloneSandboxState(state: SandboxState, opts: SetupOptions = {}): Promise<Task> {
    if (typeof state?.agentContainerId !== "string") throw invalidArgument("state", "the state of a task", state);
    const { task, batch } = this.#find(state.agentContainerId, "cloneSandboxState");
    return await batch.clone(task, opts.signal);
  }

  #find(containerId: string, call: string): NonNullable<ReturnType<RunningBatch["find"]>> & { batch: RunningBatch } {
    if (this.#batches.size === 0) throw outside(call);
    for (const batch of this.#batches) {
      const found = batch.find(containerId);
      if (found !== undefined) return { ...found, batch };
    }
    throw new SandboxError("not_found", `No open batch of this manager has a container "${containerId.slice(0, 80)}"`, {
      hint: "its task was torn down, or it belongs to another manager",
    });
  }
}

async function failureOf(work: Promise<unknown>): Promise<SandboxError | undefined> {
  return await work.then(
    () => undefined,
    (error: unknown) => toSandboxError(error),
  );
}

function outside(call: string): SandboxError {
  return new SandboxError("closed", `${call} was called outside of a batch`, {
    hint: "await manager.setupBatch(tasks) first, and call it before that batch is torn down",
  });
}
