import type { PlannedTask } from "./plan-tasks.js";

/** A task that is to be started. */
export interface ScheduledTask extends PlannedTask {
  /** On the clock of `performance.now`. */
  readonly notBefore: number;
  /** How often it was refused since its last attempt. */
  readonly refusals: number;
}

/** The tasks that wait: in their order, those that are repeated after a pause. */
export class Schedule {
  readonly #tasks: readonly PlannedTask[];
  #next = 0;
  /** Soonest first. */
  #later: ScheduledTask[] = [];

  constructor(tasks: readonly PlannedTask[]) {
    this.#tasks = tasks;
  }

  get isEmpty(): boolean {
    return this.#next >= this.#tasks.length && this.#later.length === 0;
  }

  /** Takes the next task that may be started now. */
  next(now: number = performance.now()): ScheduledTask | undefined {
    const [soonest] = this.#later;
    if (soonest !== undefined && soonest.notBefore <= now) return this.#later.shift();
    const task = this.#tasks[this.#next];
    if (task === undefined) return undefined;
    this.#next += 1;
    return { ...task, notBefore: now, refusals: 0 };
  }

  /** How long until the next task may be started, in milliseconds; undefined if none waits. */
  pause(now: number = performance.now()): number | undefined {
    const [soonest] = this.#later;
    return soonest === undefined ? undefined : Math.max(0, soonest.notBefore - now);
  }

  /** Puts a task back. */
  again(waiting: ScheduledTask, pause: number): void {
    const notBefore = performance.now() + pause;
    const at = this.#later.findLastIndex((other) => other.notBefore <= notBefore) + 1;
    this.#later.splice(at, 0, { ...waiting, notBefore });
  }
}
