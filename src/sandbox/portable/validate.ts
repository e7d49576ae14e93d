import { SandboxError } from "../../../contracts/errors.js";
import type { ExecOptions, SpawnOptions } from "../../../contracts/types.js";
import { invalidArgument } from "../../util/checks.js";
import {
  and,
  argument,
  callback,
  check,
  custom,
  env,
  type Fields,
  flag,
  hostName,
  list,
  object,
  oneOf,
  path,
  port,
  required,
  type Schema,
  signal,
  text,
  timeout,
  whole,
} from "../../util/schema.js";
import { type FileUpload, MAX_FILE_BYTES } from "../types.js";

/** What `shell` takes beside the script. */
export type ShellOptions = Omit<ExecOptions, "argv"> & { shellPath?: string };

/** Arguments and environment of one command, in bytes, as the kernel counts them. */
const MAX_COMMAND_BYTES = 2 * 1024 * 1024;
const MAX_GRACE = 3_600_000;

const argv: Schema<readonly string[]> = and(
  list(argument, { minItems: 1 }, "a non-empty array of strings"),
  (value, name) => {
    if (value[0] === "") throw invalidArgument(`${name}[0]`, "the name of a program", "");
  },
);

const stdin: Schema<NonNullable<ExecOptions["stdin"]>> = custom((value, name) => {
  if (typeof value === "string" || value instanceof Uint8Array) return;
  if (typeof value === "object" && value !== null && Symbol.asyncIterator in value) return;
  throw invalidArgument(name, "a string, a Uint8Array or an async iterable", value);
});

const started: Fields<Omit<ShellOptions, "stdin" | "maxOutput" | "raw" | "shellPath">> = {
  cwd: path,
  env,
  timeout,
  killGrace: whole(0, MAX_GRACE),
  user: text,
  signal,
  onStdout: callback(),
  onStderr: callback(),
};
const collected: Fields<Pick<ExecOptions, "stdin" | "maxOutput" | "raw">> = {
  stdin,
  maxOutput: whole(0, MAX_FILE_BYTES),
  raw: flag,
};

const execOptions: Schema<ExecOptions> = object({ argv: required(argv), ...started, ...collected });
const shellOptions: Schema<ShellOptions> = object({ shellPath: text, ...started, ...collected });
const spawnOptions: Schema<SpawnOptions> = object({
  argv: required(argv),
  ...started,
  stdin: oneOf("pipe", "none"),
  pty: object({ cols: required(port), rows: required(port) }, {}, { incomplete: "both cols and rows" }),
  service: object({
    hostname: required(hostName),
    ports: required(list(port, { minItems: 1 }, { minItems: "at least one port" }), "at least one port"),
  }),
});

/** Refuses options of `exec` that are wrong, unknown or missing. */
export function checkExecOptions(opts: unknown): asserts opts is ExecOptions {
  check(opts, execOptions, "options");
}

/** Refuses options of `spawn` that are wrong, unknown or missing. */
export function checkSpawnOptions(opts: unknown): asserts opts is SpawnOptions {
  check(opts, spawnOptions, "options");
}

/** Refuses a script that is no text, and options of `shell` that are wrong or unknown. */
export function checkShellCall(script: unknown, opts: unknown): asserts opts is ShellOptions {
  check(script, argument, "script");
  check(opts, shellOptions, "options");
}

/** Refuses a command that no kernel would take. */
export function checkCommandSize(argv: readonly string[], env: Readonly<Record<string, string>>): void {
  let size = 0;
  for (const argument of argv) size += Buffer.byteLength(argument) + 1;
  for (const key in env) size += key.length + Buffer.byteLength(env[key] ?? "") + 2;
  if (size > MAX_COMMAND_BYTES) {
    throw new SandboxError(
      "limit_exceeded",
      `argv and env have ${size} bytes together, at most ${MAX_COMMAND_BYTES} are possible`,
      { hint: "write large input to a file, or pass it as stdin" },
    );
  }
}

const content: Schema<string | Uint8Array> = custom((value, name) => {
  if (typeof value === "string" || value instanceof Uint8Array) return;
  throw invalidArgument(name, "a string or a Uint8Array", value);
});
const mode: Schema<number> = whole(0, 0o777, "permission bits from 0 to 0o777");

const uploads: Schema<readonly FileUpload[]> = list(
  object<FileUpload>({ path: required(path), content: required(content), mode }),
);
const writeOptions: Schema<{ mode?: number }> = object({ mode });

/** Refuses a list of files that could not be written. */
export function checkUploads(files: unknown): asserts files is readonly FileUpload[] {
  check(files, uploads, "files");
}

/** Refuses options of `writeFile` that are wrong or unknown. */
export function checkWriteOptions(opts: unknown): void {
  check(opts, writeOptions, "options");
}

/** Refuses what cannot be the content of a file. */
export function checkContent(value: unknown, name: string): void {
  check(value, content, name);
}
