import { SandboxError } from "../../../contracts/errors.js";
import type { ExecOptions, SpawnOptions } from "../../../contracts/types.js";
import * as is from "../../util/schema.js";
import { check, describe, type Fields, invalidArgument, type Schema } from "../../util/schema.js";
import { MAX_FILE_BYTES } from "../types.js";

/** What `shell` takes beside the script. */
export type ShellOptions = Omit<ExecOptions, "argv"> & { shellPath?: string };

/** What `exec` takes beside a program and its arguments. */
export type ProgramOptions = Omit<ExecOptions, "argv">;

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

const started: Fields<Omit<ShellOptions, "stdin" | "maxOutput" | "raw" | "check" | "shellPath">> = {
  cwd: is.path,
  env: is.env,
  timeout: is.timeout,
  killGrace: is.whole(0, MAX_GRACE),
  user: is.text,
  signal: is.signal,
  onStdout: is.callback(),
  onStderr: is.callback(),
  output: is.oneOf("separate", "combined"),
};
const collected: Fields<Pick<ExecOptions, "stdin" | "maxOutput" | "raw" | "check">> = {
  stdin,
  maxOutput: is.whole(0, MAX_FILE_BYTES),
  raw: is.flag,
  check: is.flag,
};

/** What other libraries call these options. */
const ELSEWHERE = {
  cmd: 'argv: ["program", "argument"]; for a shell command, sandbox.shell("…")',
  command: 'argv: ["program", "argument"]; for a shell command, sandbox.shell("…")',
  args: "argv, after the program",
  workdir: "cwd",
  workDir: "cwd",
  workingDirectory: "cwd",
  timeoutMs: "timeout, in milliseconds",
  input: "stdin",
} as const;

const execOptions: Schema<ExecOptions> = is.object(
  { argv: is.required(argv), ...started, ...collected },
  {},
  { elsewhere: ELSEWHERE },
);
const programOptions: Schema<ProgramOptions> = is.object({ ...started, ...collected }, {}, { elsewhere: ELSEWHERE });
const shellOptions: Schema<ShellOptions> = is.object(
  { shellPath: is.text, ...started, ...collected },
  {},
  { elsewhere: ELSEWHERE },
);
const spawnOptions: Schema<SpawnOptions> = is.object({
  argv: is.required(argv),
  ...started,
  stdin: is.oneOf("pipe", "none"),
  background: is.flag,
  pty: is.object({ cols: is.required(is.port), rows: is.required(is.port) }, {}, { incomplete: "both cols and rows" }),
  service: is.object({
    hostname: is.required(is.hostName),
    ports: is.required(is.list(is.port, { minItems: 1 }, { minItems: "at least one port" }), "at least one port"),
  }),
});

/** Turns a program, its arguments and options into the options of `exec`, which are still to be checked. */
export function toExecOptions(program: unknown, args: unknown = [], opts: unknown = {}): unknown {
  if (typeof program !== "string") throw invalidArgument("program", "a string, or one object with argv", program);
  if (!Array.isArray(args)) {
    throw new SandboxError("invalid_argument", `Invalid args: expected an array of strings, got ${describe(args)}`, {
      hint: 'pass options as the third argument: exec("ls", [], { timeout: 1_000 })',
    });
  }
  check(opts, programOptions, "options");
  return { ...opts, argv: [program, ...args] };
}

/** Refuses options of `exec` that are wrong, unknown or missing. */
export function checkExecOptions(opts: unknown): asserts opts is ExecOptions {
  check(opts, execOptions, "options");
  assertOneReader(opts as ExecOptions);
}

/** Refuses options of `spawn` that are wrong, unknown or missing. */
export function checkSpawnOptions(opts: unknown): asserts opts is SpawnOptions {
  check(opts, spawnOptions, "options");
  const { pty, output, background, onStdout, onStderr } = opts as SpawnOptions;
  if (background === true && (onStdout ?? onStderr) !== undefined) {
    const name = onStdout === undefined ? "onStderr" : "onStdout";
    throw new SandboxError("invalid_argument", `${name} can't be used with background: true, which waits for nobody`, {
      hint: "read the output with process(id).read, or omit background",
    });
  }
  assertOneReader(opts as SpawnOptions);
  if (pty !== undefined && output === "separate") {
    throw new SandboxError(
      "invalid_argument",
      'output: "separate" can\'t be had with a pty: a terminal is one stream',
      {
        hint: "omit output, or pty",
      },
    );
  }
}

/** Refuses a script that is no text, and options of `shell` that are wrong or unknown. */
export function checkShellCall(script: unknown, opts: unknown): asserts opts is ShellOptions {
  check(script, is.argument, "script");
  check(opts, shellOptions, "options");
  assertOneReader(opts as ShellOptions);
}

/** With one pipe nothing ever comes on stderr, so a callback for it would wait in vain. */
function assertOneReader({ output, onStderr }: Pick<ExecOptions, "output" | "onStderr">): void {
  if (output !== "combined" || onStderr === undefined) return;
  throw new SandboxError("invalid_argument", 'onStderr can\'t be used with output: "combined"', {
    hint: "all output goes to onStdout",
  });
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
