import { createHash } from "node:crypto";
import { SandboxError } from "../../contracts/errors.js";
import { invalidArgument } from "../util/schema.js";
import type { BatchOptions, BatchShard, BatchTask } from "./types.js";

/** A task with what identifies it. */
export interface PlannedTask {
  readonly id: string;
  /** Of everything that decides what it does: a changed task has another one. */
  readonly digest: string;
  readonly task: BatchTask;
}

/** The tasks of this shard, and the digest of the batch. A task without a command, or with the id of another one, is refused. */
export function planTasks({ tasks, argv, shard }: BatchOptions): {
  tasks: PlannedTask[];
  digest: string;
  shard: string | undefined;
} {
  const seen = new Set<string>();
  const planned = tasks.map((task, index): PlannedTask => {
    if (seen.has(task.id)) throw invalidArgument(`tasks[${index}].id`, "an id that no other task has", task.id);
    seen.add(task.id);
    return { id: task.id, digest: digestOf([task, "blueprint" in task ? [] : [commandOf(task, argv)]]), task };
  });
  const digest = digestOf(planned.map(({ id, digest: own }) => [id, own]));
  const own = shard === undefined ? planned : planned.filter((_, at) => at % shard.count === shard.index - 1);
  return { tasks: own, digest, shard: shard === undefined ? undefined : shardText(shard) };
}

/** The command that a task runs; `invalid_argument` if there is none. */
export function commandOf(
  task: Pick<Extract<BatchTask, { run?: unknown }>, "id" | "run">,
  argv: readonly string[] | undefined,
): string | readonly string[] {
  const command = task.run ?? argv;
  if (command !== undefined && command.length > 0) return command;
  throw new SandboxError("invalid_argument", `The task "${task.id}" has nothing to run`, {
    hint: "add run: to the task in the file, or give a command after --",
  });
}

/** A shard as the command line has it: `2/4`. */
export function shardText({ index, count }: BatchShard): string {
  return `${index}/${count}`;
}

/** A short text that is another one for every other value. */
export function digestOf(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 32);
}
