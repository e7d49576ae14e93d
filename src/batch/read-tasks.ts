import { readFile } from "node:fs/promises";
import { SandboxError, toSandboxError } from "../../contracts/errors.js";
import { type FileTask, parseFileTask, readTaskFile } from "../tasks.js";
import { describe } from "../util/schema.js";
import { parseTask } from "./check-options.js";
import type { BatchOptions, BatchTask } from "./types.js";

const MAX_BYTES = 256 << 20;

/** How a file of tasks is read. */
export interface ReadTasksOptions {
  /** As in `readTaskFile`. Default false. */
  trust?: boolean;
}

/**
 * Reads the tasks of a batch: a file with a JSON object on each line, or a task file of `glovebox task run` (YAML or JSON). Errors name the line.
 */
export async function readTasks(
  path: string,
  opts: ReadTasksOptions = {},
): Promise<Pick<BatchOptions, "tasks" | "batchIdPrefix">> {
  if (/\.(ya?ml|json)$/.test(path)) {
    const { tasks, networkEnabled, batchIdPrefix } = await readTaskFile(path, opts);
    return {
      tasks: tasks.map((task) => ({ ...fromFile(task), ...(networkEnabled && { networkEnabled }) })),
      ...(batchIdPrefix !== undefined && { batchIdPrefix }),
    };
  }
  return { tasks: parseLines(await readText(path), path, opts) };
}

function fromFile({ setup, ...rest }: FileTask): BatchTask {
  return { id: setup.taskId, setup, ...rest };
}

async function readText(path: string): Promise<string> {
  try {
    const bytes = await readFile(path);
    if (bytes.length > MAX_BYTES) throw new SandboxError("limit_exceeded", `it is larger than ${MAX_BYTES} bytes`);
    // Some programs begin a text with a mark of its encoding.
    return bytes.toString("utf8").replace(/^\uFEFF/, "");
  } catch (error) {
    const { code, message } = toSandboxError(error);
    throw new SandboxError(code, `Cannot read the tasks in "${path}": ${message}`, {
      cause: error,
      hint: "name a file with a task on each line, as JSON; docs/batches.md shows one",
    });
  }
}

function parseLines(text: string, path: string, opts: ReadTasksOptions): BatchTask[] {
  const lineOf = new Map<string, number>();
  const tasks = text.split("\n").flatMap((line, index): BatchTask[] => {
    if (line.trim() === "") return [];
    try {
      const task = parseLine(line, path, opts);
      const other = lineOf.get(task.id);
      if (other !== undefined) {
        throw new SandboxError("invalid_argument", `the id ${describe(task.id)} is also that of line ${other}`, {
          hint: "give each task an id of its own",
        });
      }
      lineOf.set(task.id, index + 1);
      return [task];
    } catch (error) {
      const { code, message, hint } = toSandboxError(error);
      throw new SandboxError(code, `${path}, line ${index + 1}: ${message}`, { cause: error, hint });
    }
  });
  if (tasks.length > 0) return tasks;
  throw new SandboxError("invalid_argument", `${path} has no task`, { hint: "write a JSON object on each line" });
}

function parseLine(line: string, path: string, opts: ReadTasksOptions): BatchTask {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    throw new SandboxError("invalid_argument", `this is no JSON: ${(error as Error).message}`, { cause: error });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new SandboxError("invalid_argument", `expected an object, got ${describe(value)}`);
  }
  return "taskId" in value || "agentContainer" in value ? fromFile(parseFileTask(value, path, opts)) : parseTask(value);
}
