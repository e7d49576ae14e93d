import { randomBytes } from "node:crypto";
import type { ContainerEngine, EngineImage } from "../../contracts/container-engine.js";
import { SandboxError, toSandboxError } from "../../contracts/errors.js";
import { checkSetup } from "./check-setup.js";
import { allDone, ContainerGroup, type GroupParts, type Member } from "./container-group.js";
import type { EmitTaskEvent } from "./emit.js";
import { planImages, usesOf } from "./image-plan.js";
import { createImageStore, type ImageStore } from "./image-store.js";
import { newExecutionId } from "./names.js";
import { logTail } from "./own-command.js";
import { RunningTask } from "./running-task.js";
import { type MemberPlan, planClone, planTask, type TaskPlan } from "./task-plan.js";
import { underPolicy } from "./task-policy.js";
import type { Batch, SetupOptions, Task, TaskSetup } from "./types.js";

/** On everything that a batch creates: its batch, and the execution of its task. */
const BATCH_LABEL = "glovebox.batch";
const EXECUTION_LABEL = "glovebox.execution";

/** What a batch needs from its manager. */
export interface BatchParts {
  readonly batchId: string;
  readonly engine: ContainerEngine;
  readonly networkEnabled: boolean;
  readonly verifyOnly: boolean;
  readonly limit: GroupParts["limit"];
  readonly emit: EmitTaskEvent;
  /** Called when the batch is torn down. */
  onClosed(batch: RunningBatch): void;
}

/** A batch whose images are ready, and its tasks. */
export class RunningBatch implements Batch {
  readonly batchId: string;
  readonly #parts: BatchParts;
  readonly #ensureImage: ImageStore;
  readonly #closing = new AbortController();
  readonly #tasks = new Set<RunningTask>();
  readonly #setups = new Set<Promise<unknown>>();
  /** What its tasks were made from, by their executions; a clone is checked again. */
  readonly #allowed = new Map<string, TaskSetup>();
  /** Retries for what failed setups could not remove. */
  readonly #left = new Set<() => Promise<readonly SandboxError[]>>();
  #teardown: Promise<void> | undefined;

  constructor(parts: BatchParts) {
    this.batchId = parts.batchId;
    this.#parts = parts;
    this.#ensureImage = createImageStore(parts.engine, parts.verifyOnly, parts.emit);
  }

  /** Prepares every image of these tasks. Waits for all of them, then throws the first failure. */
  async prepare(tasks: readonly TaskSetup[], signal?: AbortSignal): Promise<void> {
    const orders = planImages(usesOf(tasks));
    const both = this.#signal(signal);
    await allDone(orders.map((order) => this.#ensureImage(order, both)));
  }

  async setupTask(setup: TaskSetup, opts: SetupOptions = {}): Promise<Task> {
    const { networkEnabled, engine } = this.#parts;
    checkSetup(setup, "setup", networkEnabled);
    return await this.#during(async () => {
      const allowed = await underPolicy(engine.name, setup, networkEnabled);
      const signal = this.#signal(opts.signal);
      const images = new Map<string, EngineImage>();
      for (const step of planImages(usesOf([setup])))
        images.set(step.tag, await this.#ensureImage(step, this.#closing.signal));
      const plan = planTask(this.batchId, newExecutionId(), allowed, images, networkEnabled);
      this.#allowed.set(plan.executionId, allowed);
      const task = await this.#start(plan, signal, []);
      this.#parts.emit("task-ready", `task ${setup.taskId} is ready`, { taskId: setup.taskId });
      return task;
    });
  }

  /** Copies a task of this batch, all containers at the same moment. */
  async clone(source: RunningTask, signal?: AbortSignal): Promise<Task> {
    return await this.#during(async () => {
      const both = this.#signal(signal);
      const { engine, emit, networkEnabled } = this.#parts;
      const { plan, members } = source.group;
      const setup = this.#allowed.get(plan.executionId);
      if (setup !== undefined) await underPolicy(engine.name, setup, networkEnabled);
      const labels = this.#labels(plan);
      const names = new Map(members.map((member) => [member.plan, `glovebox-clone:${randomBytes(8).toString("hex")}`]));
      const nameOf = (member: MemberPlan): string => names.get(member) ?? "";
      const commit = async (): Promise<void> => {
        both.throwIfAborted();
        await allDone(members.map((member) => member.container.commit(nameOf(member.plan), labels)));
      };
      const start = (): Promise<RunningTask> => {
        const cloned = planClone(this.batchId, plan, nameOf);
        return this.#start(cloned, both, [...names.values()], (target, copy) => fillVolumes(members, target, copy));
      };
      // A commit leaves out volumes, so they are copied while the origin is still frozen.
      const hasVolumes = members.some((member) => member.plan.image.volumes.length > 0);
      try {
        const task = hasVolumes
          ? await source.group.frozen(() => commit().then(start))
          : await source.group.frozen(commit).then(start);
        emit("task-cloned", `task ${plan.taskId} was cloned`, { taskId: plan.taskId });
        return task;
      } catch (error) {
        const clean = (): Promise<SandboxError[]> => removeImages(engine, names.values());
        const left = await clean();
        if (left.length > 0) this.#left.add(clean);
        this.#leaked(left, plan.taskId);
        throw error;
      }
    });
  }

  /** The task or clone that has this container. */
  find(containerId: string): { task: RunningTask; member: Member } | undefined {
    for (const task of this.#tasks) {
      const member = task.group.members.find(({ container }) => container.id === containerId);
      if (member !== undefined) return { task, member };
    }
    return undefined;
  }

  /** The next call retries what could not be removed. */
  teardown(): Promise<void> {
    this.#teardown ??= this.#close().finally(() => {
      if (this.#tasks.size + this.#left.size > 0) this.#teardown = undefined;
    });
    return this.#teardown;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.teardown();
  }

  async #close(): Promise<void> {
    this.#closing.abort(new SandboxError("closed", `The batch ${this.batchId} was torn down`));
    await Promise.allSettled(this.#setups);
    await Promise.all([...this.#tasks].map((task) => task.teardown()));
    await Promise.all([...this.#left].map((again) => this.#clean(again)));
    this.#parts.engine.close();
    this.#parts.onClosed(this);
  }

  async #start(
    plan: TaskPlan,
    signal: AbortSignal,
    images: readonly string[],
    fill?: GroupParts["fill"],
  ): Promise<RunningTask> {
    const parts = { ...this.#groupParts(plan), ...(fill && { fill }) };
    const group = await ContainerGroup.create(plan, parts, signal, images);
    const isClone = images.length > 0;
    const task = new RunningTask(group, (gone) => this.#remove(gone, isClone));
    this.#tasks.add(task);
    return task;
  }

  #groupParts(plan: TaskPlan): GroupParts {
    const { engine, limit, emit } = this.#parts;
    const { taskId } = plan;
    return {
      engine,
      limit,
      labels: this.#labels(plan),
      onWarning: (container, message) => emit("warning", message, { taskId, container }),
      onLeft: (left, again) => {
        this.#left.add(again);
        this.#leaked(left, taskId);
      },
      onExit: ({ plan: { container, request }, command }) => {
        const { exitCode, logs } = command?.status ?? { logs: "" };
        // Lost together with its container, which was removed on purpose.
        if (exitCode === undefined) return;
        const tail = logTail(logs);
        const message = `the command of "${container}" ended with exit code ${exitCode}${tail === "" ? "" : `:\n${tail}`}`;
        emit("command-exit", message, { taskId, container }, request.env);
      },
    };
  }

  #labels({ executionId }: TaskPlan): Record<string, string> {
    return { [BATCH_LABEL]: this.batchId, [EXECUTION_LABEL]: executionId };
  }

  async #clean(again: () => Promise<readonly SandboxError[]>): Promise<void> {
    const left = await again();
    if (left.length === 0) this.#left.delete(again);
    this.#leaked(left);
  }

  #leaked(left: readonly SandboxError[], taskId?: string): void {
    for (const { message } of left) this.#parts.emit("leak", message, taskId === undefined ? {} : { taskId });
  }

  /** Removes a task with its clones, or one clone. Returns whether everything is gone. */
  async #remove(task: RunningTask, isClone: boolean): Promise<boolean> {
    const { executionId } = task.state;
    const clones = isClone
      ? []
      : [...this.#tasks].filter((other) => other !== task && other.state.executionId === executionId);
    const [left] = await Promise.all([task.group.remove(), ...clones.map((clone) => clone.teardown())]);
    this.#leaked(left, task.taskId);
    if (left.length > 0) return false;
    this.#tasks.delete(task);
    this.#parts.emit("task-down", `task ${task.taskId} is gone`, { taskId: task.taskId });
    return true;
  }

  #signal(signal: AbortSignal | undefined): AbortSignal {
    return signal === undefined ? this.#closing.signal : AbortSignal.any([signal, this.#closing.signal]);
  }

  /** Refuses work in a batch that is being torn down. Teardown waits for work in progress. */
  async #during<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closing.signal.aborted) throw this.#closing.signal.reason;
    const running = work().catch((error: unknown) => {
      throw toSandboxError(error, { backend: this.#parts.engine.name });
    });
    this.#setups.add(running);
    try {
      return await running;
    } finally {
      this.#setups.delete(running);
    }
  }
}

/** Copies the volumes of a container into its clone. */
async function fillVolumes(members: readonly Member[], target: MemberPlan, copy: Member["container"]): Promise<void> {
  const origin = members.find(({ plan }) => plan.service === target.service);
  for (const path of target.image.volumes) {
    if (origin !== undefined) await copy.copyFrom(origin.container, path);
  }
}

/** Returns what could not be removed. */
async function removeImages(engine: ContainerEngine, names: Iterable<string>): Promise<SandboxError[]> {
  const done = await Promise.allSettled([...names].map((name) => engine.removeImage(name)));
  return done.flatMap((result) => (result.status === "rejected" ? [toSandboxError(result.reason)] : []));
}
