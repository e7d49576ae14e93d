import { readFile } from "node:fs/promises";
import { dirname, resolve, sep } from "node:path";
import { SandboxError, toSandboxError } from "../../contracts/errors.js";
import { isWithin, realPathOf, repositoryOf } from "../util/repository-of.js";
import * as is from "../util/schema.js";
import { check, invalidArgument, parseDuration, type Schema } from "../util/schema.js";
import { tag } from "./check-image.js";
import {
  checkMeaning,
  command,
  container,
  type WrittenContainer,
  type WrittenSetup,
  type WrittenTime,
  writtenFields,
  writtenTime,
} from "./check-setup.js";
import { batchIdPrefix } from "./names.js";
import type { BuildStage, ContainerSetup, ImageSpec, TaskSetup } from "./types.js";

const MAX_BYTES = 16 << 20;

/** A task of a file, and the command to run in it. */
export interface FileTask {
  readonly setup: TaskSetup;
  /** Runs in the agent's container; a string is run by `/bin/sh`. Default: the command of the command line. */
  readonly run?: string | readonly string[];
  /** Milliseconds that `run` may take. */
  readonly timeout?: number;
}

/** Tasks that run together. */
export interface TaskFile {
  readonly networkEnabled: boolean;
  readonly batchIdPrefix?: string;
  readonly tasks: readonly FileTask[];
}

/** A task as a file has it: what it is made of, and what is run in it. */
interface WrittenTask extends Omit<WrittenSetup, "agentContainer">, Pick<FileTask, "run"> {
  /** Short for an `agentContainer` of this image. */
  image?: string;
  agentContainer?: WrittenContainer;
  timeout?: WrittenTime;
}

/** A file of tasks, as it is written. */
interface WrittenFile extends Partial<Pick<TaskFile, "networkEnabled" | "batchIdPrefix">> {
  $schema?: string;
  tasks: readonly WrittenTask[];
}

const writtenTask: Schema<WrittenTask> = is.object<WrittenTask>(
  {
    ...writtenFields,
    agentContainer: is.noted(container, { description: "The container that the agent works in." }),
    image: is.noted(tag, { description: "Short for an agentContainer that runs this image." }),
    run: is.noted(command, {
      description: "What runs in the agent's container; the command line's when absent.",
    }),
    timeout: writtenTime("How long `run` may take: a number followed by ms, s, m, h or d, or milliseconds."),
  },
  {
    anyOf: [{ required: ["image"] }, { required: ["agentContainer"] }],
  },
);

/** What a file of tasks looks like. */
export const TASK_FILE_SCHEMA: Schema<WrittenFile> = is.object(
  {
    $schema: is.custom(() => undefined, { type: "string" }),
    networkEnabled: is.noted(is.flag, { description: "Whether tasks may reach other machines.", default: false }),
    batchIdPrefix: is.noted(batchIdPrefix, {
      description: "First part of the names of everything that is made.",
      default: "workbench",
    }),
    tasks: is.required(is.list(writtenTask, { minItems: 1 }, { minItems: "at least one task" }), "at least one task"),
  },
  {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Glovebox task file",
    description:
      "Tasks for `glovebox task run`: for each one a container that the agent works in, and the services that it needs.",
  },
);

/** How a task file is read. */
export interface TaskFileOptions {
  /**
   * Whether a file in a git repository may name build contexts outside that repository. Containers could read their files,
   * and the task file may come from anywhere. Default false.
   */
  trust?: boolean;
}

/** Reads a task file, YAML or JSON. Its paths are relative to the file. */
export async function readTaskFile(path: string, opts: TaskFileOptions = {}): Promise<TaskFile> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    const { code, message } = toSandboxError(error);
    throw new SandboxError(code, `Cannot read the task file "${path}": ${message}`, {
      cause: error,
      hint: "name a YAML or JSON file; docs/tasks.md shows one",
    });
  }
  return await parseTaskFile(text, path, opts);
}

/** Like `readTaskFile`, for the text of the file at `path`. */
export async function parseTaskFile(text: string, path: string, opts: TaskFileOptions = {}): Promise<TaskFile> {
  if (text.length > MAX_BYTES) throw new SandboxError("limit_exceeded", `${path} is larger than ${MAX_BYTES} bytes`);
  try {
    const file = toTaskFile(await parseYaml(text), dirname(resolve(path)));
    if (opts.trust !== true) assertOwnContexts(file.tasks, repositoryOf(path));
    return file;
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error;
    throw new SandboxError(error.code, `${path}: ${error.message}`, { cause: error, hint: error.hint });
  }
}

async function parseYaml(text: string): Promise<unknown> {
  const { parseDocument } = await import("yaml");
  const document = parseDocument(text, { prettyErrors: true });
  const [fault] = document.errors;
  if (fault !== undefined) {
    const [message = "not YAML"] = fault.message.split("\n");
    throw new SandboxError("invalid_argument", message.replace(/:$/, ""), { cause: fault });
  }
  try {
    return document.toJS({ maxAliasCount: 100 }) as unknown;
  } catch (cause) {
    throw new SandboxError("limit_exceeded", "it has too many aliases", { cause });
  }
}

function toTaskFile(value: unknown, directory: string): TaskFile {
  check(value, TASK_FILE_SCHEMA, "the file");
  const { networkEnabled = false, batchIdPrefix: prefix, tasks } = value;
  const seen = new Set<string>();
  const read = tasks.map((task, index): FileTask => {
    const name = `tasks[${index}]`;
    const own = toFileTask(task, name, directory, networkEnabled);
    const { taskId } = own.setup;
    if (seen.has(taskId)) throw invalidArgument(`${name}.taskId`, "an id that no other task has", taskId);
    seen.add(taskId);
    return own;
  });
  return { networkEnabled, ...(prefix !== undefined && { batchIdPrefix: prefix }), tasks: read };
}

/** Reads one task, as a task file has it, from another file at `path`. Its containers reach no other machine. */
export function parseFileTask(value: unknown, path: string, opts: TaskFileOptions = {}): FileTask {
  check(value, writtenTask, "task");
  const task = toFileTask(value, "task", dirname(resolve(path)), false);
  if (opts.trust !== true) assertOwnContexts([task], repositoryOf(path));
  return task;
}

function toFileTask(written: WrittenTask, name: string, directory: string, networkEnabled: boolean): FileTask {
  const { run, timeout, image, agentContainer, ...rest } = written;
  const setup = toSetup({ ...rest, agentContainer: agentOf(image, agentContainer, name) }, directory);
  checkMeaning(setup, name, networkEnabled);
  return { setup, ...(run !== undefined && { run }), ...toTimeout(timeout) };
}

function agentOf(image: string | undefined, agent: WrittenContainer | undefined, name: string): WrittenContainer {
  if (image !== undefined && agent !== undefined) {
    throw new SandboxError("invalid_argument", `${name} has image and agentContainer`, {
      hint: "image is short for an agentContainer; give one of them",
    });
  }
  if (agent !== undefined) return agent;
  if (image !== undefined) return { name: "agent", spec: { imageSpec: { type: "pull", tag: image } } };
  throw new SandboxError("invalid_argument", `${name} has no image`, {
    hint: "for example image: busybox; agentContainer says more about the container",
  });
}

function assertOwnContexts(tasks: readonly FileTask[], repository: string | undefined): void {
  if (repository === undefined) return;
  const top = realPathOf(repository);
  for (const { setup } of tasks) {
    for (const { spec } of [setup.agentContainer, ...Object.values(setup.serviceContainers ?? {})]) {
      for (const context of contextsOf(spec.imageSpec)) {
        const real = realPathOf(context);
        const isOfGit = real.slice(top.length).split(sep).includes(".git");
        if (isWithin(real, top) && !isOfGit) continue;
        const why = isWithin(real, top) ? "in a git directory" : `outside ${top}`;
        throw new SandboxError("permission_denied", `Task "${setup.taskId}" builds from ${real}, ${why}`, {
          hint: "the file is in a repository and could come from anywhere; if you trust it: --trust (trust: true)",
        });
      }
    }
  }
}

function contextsOf(spec: ImageSpec): string[] {
  if (spec.type === "build") return [spec.contextPath];
  return spec.type === "multi-stage" ? spec.stages.map(({ contextPath }) => contextPath) : [];
}

/** The task that a file means: its paths start at the file, and its times are milliseconds. */
function toSetup({ agentContainer, serviceContainers = {}, ...rest }: WrittenSetup, directory: string): TaskSetup {
  const services = Object.entries(serviceContainers);
  return {
    ...rest,
    agentContainer: toContainer(agentContainer, directory),
    ...(services.length > 0 && {
      serviceContainers: Object.fromEntries(services.map(([key, each]) => [key, toContainer(each, directory)])),
    }),
  };
}

function toContainer({ name, spec: { waitFor, ...spec } }: WrittenContainer, directory: string): ContainerSetup {
  const { timeout, ...conditions } = waitFor ?? {};
  return {
    name,
    spec: {
      ...spec,
      imageSpec: imageWithPaths(spec.imageSpec, directory),
      ...(waitFor !== undefined && { waitFor: { ...conditions, ...toTimeout(timeout) } }),
    },
  };
}

function toTimeout(written: WrittenTime | undefined): { timeout?: number } {
  const timeout = written === undefined ? undefined : parseDuration(written);
  return timeout === undefined ? {} : { timeout };
}

function imageWithPaths(spec: ImageSpec, directory: string): ImageSpec {
  const placed = <T extends { contextPath: string }>(build: T): T => ({
    ...build,
    contextPath: resolve(directory, build.contextPath),
  });
  if (spec.type === "build") return placed(spec);
  if (spec.type === "multi-stage") return { ...spec, stages: spec.stages.map((stage: BuildStage) => placed(stage)) };
  return spec;
}
