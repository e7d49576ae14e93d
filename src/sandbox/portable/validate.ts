import { SandboxError } from "../../../contracts/errors.js";
import type { ExecOptions, SpawnOptions } from "../../../contracts/types.js";
import * as is from "../../util/schema.js";
import { check, type Fields, invalidArgument, type Schema } from "../../util/schema.js";
import { type FileUpload, MAX_FILE_BYTES } from "../types.js";

/** What `shell` takes beside the script. */
export type ShellOptions = Omit<ExecOptions, "argv"> & { shellPath?: string };

/** Arguments and environment of one command, in bytes, as the kernel counts them. */
const MAX_COMMAND_BYTES = 2 * 1024 * 1024;
const MAX_GRACE = 3_600_000;

const argv: Schema<readonly string[]> = is.and(
  is.list(is.argument, { minItems: 1 }, "a non-empty array of strings"),
  (value, name) => {
    if (value[0] === "") throw invalidArgument(`${name}[0]`, "the name of a program", "");
  },
);

const stdin: Schema<NonNullable<ExecOptions["stdin"]>> = is.custom((value, name) => {
  if (typeof value === "string" || value instanceof Uint8Array) return;
  if (typeof value === "object" && value !== null && Symbol.asyncIterator in value) return;
  throw invalidArgument(name, "a string, a Uint8Array or an async iterable", value);
});

const started: Fields<Omit<ShellOptions, "stdin" | "maxOutput" | "raw" | "shellPath">> = {
  cwd: is.path,
  env: is.env,
  timeout: is.timeout,
  killGrace: is.whole(0, MAX_GRACE),
  user: is.text,
  signal: is.signal,
  onStdout: is.callback(),
  onStderr: is.callback(),
};
const collected: Fields<Pick<ExecOptions, "stdin" | "maxOutput" | "raw">> = {
  stdin,
  maxOutput: is.whole(0, MAX_FILE_BYTES),
  raw: is.flag,
};

const execOptions: Schema<ExecOptions> = is.object({ argv: is.required(argv), ...started, ...collected });
const shellOptions: Schema<ShellOptions> = is.object({ shellPath: is.text, ...started, ...collected });
const spawnOptions: Schema<SpawnOptions> = is.object({
  argv: is.required(argv),
  ...started,
  stdin: is.oneOf("pipe", "none"),
  pty: is.object({ cols: is.required(is.port), rows: is.required(is.port) }, {}, { incomplete: "both cols and rows" }),
  service: is.object({
    hostname: is.required(is.hostName),
    ports: is.required(is.list(is.port, { minItems: 1 }, { minItems: "at least one port" }), "at least one port"),
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
  check(script, is.argument, "script");
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

const content: Schema<string | Uint8Array> = is.custom((value, name) => {
  if (typeof value === "string" || value instanceof Uint8Array) return;
  throw invalidArgument(name, "a string or a Uint8Array", value);
});
const mode: Schema<number> = is.whole(0, 0o777, "permission bits from 0 to 0o777");

const uploads: Schema<readonly FileUpload[]> = is.list(
  is.object<FileUpload>({ path: is.required(is.path), content: is.required(content), mode }),
);
const writeOptions: Schema<{ mode?: number }> = is.object({ mode });

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
