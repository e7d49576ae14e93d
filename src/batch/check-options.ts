import { SandboxError } from "../../contracts/errors.js";
import { hasControls } from "../util/inert-text.js";
import * as is from "../util/schema.js";
import { check, invalidArgument, type Schema } from "../util/schema.js";
import type { BatchOptions, BatchShard, BatchTask, BlueprintTask, CommandTask, ContainerTask } from "./types.js";

/** A label takes it, and so does a variable. */
const taskId = is.and(
  is.string({ minLength: 1, maxLength: 200 }, { maxLength: "at most 200 characters" }),
  (value, where) => {
    if (hasControls(value)) throw invalidArgument(where, "a name without control characters", value);
  },
);

const words = is.list<readonly string[]>(is.argument, { minItems: 1 }, "a string or a non-empty array of strings");
const run: Schema<string | readonly string[]> = is.noted(
  is.union("a string or a non-empty array of strings", is.text, words),
  { description: "Text for /bin/sh, or a program and its arguments." },
);

/** The fields of a command but for its deadline, which files write in another way. */
const commandFields: Omit<is.Fields<CommandTask>, "timeout"> = {
  id: is.required(taskId),
  run,
  image: is.text,
  env: is.env,
  cwd: is.path,
  stdin: is.string(),
  files: is.record(is.string()),
};

/** The fields of a run of a blueprint, in the same way. */
const blueprintFields: Omit<is.Fields<BlueprintTask>, "timeout"> = {
  id: is.required(taskId),
  blueprint: is.required(is.text),
  repo: is.required(is.path),
  intent: is.required(is.text),
  inputs: is.record(is.scalar(["string", "number", "boolean"])),
  ref: is.text,
  agent: is.text,
  model: is.text,
};

/** Words by which a user may look for `run`. */
const RUN = "run: a line of shell, or a list of words";
const ELSEWHERE = { command: RUN, cmd: RUN, argv: RUN, script: RUN };

const command = is.object<CommandTask>({ ...commandFields, timeout: is.timeout }, {}, { elsewhere: ELSEWHERE });
const blueprint: Schema<BlueprintTask> = is.object<BlueprintTask>({ ...blueprintFields, timeout: is.timeout });
const containers: Schema<ContainerTask> = is.object<ContainerTask>({
  id: is.required(taskId),
  // The manager checks it.
  setup: is.required(is.custom((value, where) => check(value, is.anything, where))),
  networkEnabled: is.flag,
  run,
  timeout: is.timeout,
});

/** A deadline in a file: with its unit, or in milliseconds. */
type Written<T> = Omit<T, "timeout"> & { timeout?: number | string };
const TIME = "a time such as 90s or 10m, or whole milliseconds";
const writtenTimeout: Schema<number | string> = is.custom((value, where) => {
  const time = typeof value === "string" || typeof value === "number" ? is.parseDuration(value) : undefined;
  if (time === undefined) throw invalidArgument(where, TIME, value);
  check(time, is.timeout, where);
});
const writtenCommand = is.object<Written<CommandTask>>(
  { ...commandFields, timeout: writtenTimeout },
  {},
  { elsewhere: ELSEWHERE },
);
const writtenBlueprint = is.object<Written<BlueprintTask>>({ ...blueprintFields, timeout: writtenTimeout });

/** Reads a command or a run of a blueprint as files have it. */
export function parseTask(value: object): BatchTask {
  const schema: Schema<Written<CommandTask>> | Schema<Written<BlueprintTask>> =
    "blueprint" in value ? writtenBlueprint : writtenCommand;
  check(value, schema as Schema<Written<CommandTask>>, "task");
  const { timeout, ...rest } = value;
  const time = timeout === undefined ? undefined : is.parseDuration(timeout);
  return { ...rest, ...(time !== undefined && { timeout: time }) };
}

/** What kind of task it is: by the field that only this kind has. */
function schemaOfTask(task: object): Schema<BatchTask> {
  if ("setup" in task) return containers as Schema<BatchTask>;
  return ("blueprint" in task ? blueprint : command) as Schema<BatchTask>;
}

const task: Schema<BatchTask> = is.custom((value, where) => {
  if (typeof value !== "object" || value === null) throw invalidArgument(where, "a task", value);
  check(value, schemaOfTask(value), where);
});

const MOST = 1_000_000;
const money = is.custom<number>((value, where) => {
  if (typeof value === "number" && Number.isFinite(value) && value > 0) return;
  throw invalidArgument(where, "a sum above zero, in US dollars", value);
});
const shard: Schema<BatchShard> = is.and(
  is.object<BatchShard>({ index: is.required(is.positive), count: is.required(is.positive) }),
  (value, where) => {
    if (value.index > value.count)
      throw invalidArgument(where, "a shard of its count", `${value.index}/${value.count}`);
  },
);

const batchOptions: Schema<BatchOptions> = is.object<BatchOptions>({
  tasks: is.required(is.list(task, { minItems: 1, maxItems: MOST }, { minItems: "at least one task" })),
  out: is.required(is.path),
  backend: is.text,
  argv: words,
  // openSandbox checks them.
  sandbox: is.custom((value, where) => {
    if (typeof value !== "object" || value === null) throw invalidArgument(where, "an object", value);
    for (const key of ["backend", "id", "name", "ifExists", "keep", "signal", "ttl"]) {
      if (key in value) throw invalidArgument(`${where}.${key}`, "nothing: the batch decides it", "a value");
    }
  }),
  concurrency: is.whole(1, 10_000),
  retries: is.whole(0, 100),
  backoff: is.timeout,
  patience: is.timeout,
  maxCost: money,
  pricePerHour: money,
  shard,
  timeout: is.timeout,
  maxOutput: is.whole(0, 16 << 20),
  ifChanged: is.oneOf("refuse", "run"),
  retry: is.list(is.oneOf("passed", "failed", "refused", "infra")),
  // The manager checks it.
  batchIdPrefix: is.text,
  trust: is.flag,
  signal: is.signal,
  onProgress: is.callback(),
  onStage: is.callback(),
  onNote: is.callback(),
});

/** Refuses options that are wrong, before anything is made. */
export function checkBatchOptions(options: BatchOptions): void {
  check(options, batchOptions, "options");
  const { maxCost, pricePerHour, tasks } = options;
  if (maxCost === undefined || pricePerHour !== undefined) return;
  const unpriced = tasks.find((each) => !("blueprint" in each));
  if (unpriced === undefined) return;
  throw new SandboxError("invalid_argument", `maxCost needs pricePerHour: nothing says what "${unpriced.id}" costs`, {
    hint: "say what an hour of a sandbox costs: pricePerHour, or --price-per-hour 0.12",
  });
}
