import { SandboxError } from "../../../contracts/errors.js";
import type { ExecOptions, SpawnOptions } from "../../../contracts/types.js";
import {
  arrayOf,
  type Check,
  checkBoolean,
  checkEnv,
  checkFunction,
  checkHostName,
  checkOptions,
  checkPath,
  checkSignal,
  checkText,
  checkTimeout,
  invalidArgument,
  oneOf,
  type Shape,
  whole,
} from "../../util/checks.js";
import { type FileUpload, MAX_FILE_BYTES } from "../types.js";

/** What `shell` takes beside the script. */
export type ShellOptions = Omit<ExecOptions, "argv"> & { shellPath?: string };

/** Arguments and environment of one command, in bytes, as the kernel counts them. */
const MAX_COMMAND_BYTES = 2 * 1024 * 1024;
const MAX_GRACE = 3_600_000;

const checkArgv: Check = (value, name) => {
  if (!Array.isArray(value) || value.length === 0) throw invalidArgument(name, "a non-empty array of strings", value);
  for (let index = 0; index < value.length; index++) {
    const argument: unknown = value[index];
    if (typeof argument !== "string") throw invalidArgument(`${name}[${index}]`, "a string", argument);
    if (argument.includes("\0")) throw invalidArgument(`${name}[${index}]`, "a string without NUL", argument);
  }
  if (value[0] === "") throw invalidArgument(`${name}[0]`, "the name of a program", "");
};

const checkStdin: Check = (value, name) => {
  if (typeof value === "string" || value instanceof Uint8Array) return;
  if (typeof value === "object" && value !== null && Symbol.asyncIterator in value) return;
  throw invalidArgument(name, "a string, a Uint8Array or an async iterable", value);
};

const ptyShape: Shape = new Map([
  ["cols", whole(1, 65_535)],
  ["rows", whole(1, 65_535)],
]);

const checkPty: Check = (value, name) => {
  checkOptions(value, ptyShape, name);
  const { cols, rows } = value as Record<string, unknown>;
  if (cols === undefined || rows === undefined) throw invalidArgument(name, "both cols and rows", value);
};

const serviceShape: Shape = new Map([
  ["hostname", checkHostName],
  ["ports", arrayOf(whole(1, 65_535))],
]);

const checkService: Check = (value, name) => {
  checkOptions(value, serviceShape, name);
  const { hostname, ports } = value as { hostname?: unknown; ports?: unknown[] };
  checkHostName(hostname, `${name}.hostname`);
  if (!ports?.length) throw invalidArgument(`${name}.ports`, "at least one port", ports);
};

const started: readonly (readonly [string, Check])[] = [
  ["cwd", checkPath],
  ["env", checkEnv],
  ["timeout", checkTimeout],
  ["killGrace", whole(0, MAX_GRACE)],
  ["user", checkText],
  ["signal", checkSignal],
  ["onStdout", checkFunction],
  ["onStderr", checkFunction],
];

const collected: readonly (readonly [string, Check])[] = [
  ["stdin", checkStdin],
  ["maxOutput", whole(0, MAX_FILE_BYTES)],
  ["raw", checkBoolean],
];

const execShape: Shape = new Map([["argv", checkArgv] as const, ...started, ...collected]);
const shellShape: Shape = new Map([["shellPath", checkText as Check] as const, ...started, ...collected]);
const spawnShape: Shape = new Map([
  ["argv", checkArgv] as const,
  ...started,
  ["stdin", oneOf("pipe", "none")] as const,
  ["pty", checkPty] as const,
  ["service", checkService] as const,
]);

/** Refuses options of `exec` that are wrong, unknown or missing. */
export function checkExecOptions(opts: unknown): asserts opts is ExecOptions {
  checkOptions(opts, execShape, "options");
  requireArgv(opts);
}

/** Refuses options of `spawn` that are wrong, unknown or missing. */
export function checkSpawnOptions(opts: unknown): asserts opts is SpawnOptions {
  checkOptions(opts, spawnShape, "options");
  requireArgv(opts);
}

/** Refuses a script that is no text, and options of `shell` that are wrong or unknown. */
export function checkShellCall(script: unknown, opts: unknown): asserts opts is ShellOptions {
  if (typeof script !== "string") throw invalidArgument("script", "a string", script);
  if (script.includes("\0")) throw invalidArgument("script", "a string without NUL", script);
  checkOptions(opts, shellShape, "options");
}

function requireArgv(opts: unknown): void {
  if ((opts as { argv?: unknown }).argv === undefined) {
    throw invalidArgument("argv", "a non-empty array of strings", undefined);
  }
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

const uploadShape: Shape = new Map([
  ["path", checkPath as Check],
  ["content", checkContent],
  ["mode", checkMode],
]);

/** Refuses a list of files that could not be written. */
export function checkUploads(files: unknown): asserts files is readonly FileUpload[] {
  if (!Array.isArray(files)) throw invalidArgument("files", "an array", files);
  files.forEach((file: unknown, index) => {
    const name = `files[${index}]`;
    checkOptions(file, uploadShape, name);
    const { path, content } = file as Partial<FileUpload>;
    checkPath(path, `${name}.path`);
    checkContent(content, `${name}.content`);
  });
}

const writeShape: Shape = new Map([["mode", checkMode]]);

/** Refuses options of `writeFile` that are wrong or unknown. */
export function checkWriteOptions(opts: unknown): void {
  checkOptions(opts, writeShape, "options");
}

/** Refuses what cannot be the content of a file. */
export function checkContent(value: unknown, name: string): void {
  if (typeof value !== "string" && !(value instanceof Uint8Array)) {
    throw invalidArgument(name, "a string or a Uint8Array", value);
  }
}

function checkMode(value: unknown, name: string): void {
  if (!Number.isInteger(value) || (value as number) < 0 || (value as number) > 0o777) {
    throw invalidArgument(name, "permission bits from 0 to 0o777", value);
  }
}
