import { SandboxError, type SandboxErrorCode } from "../../contracts/errors.js";
import type { Sandbox } from "../../contracts/sandbox.js";
import { countOf } from "../util/count-of.js";
import { truncate } from "../util/sanitize.js";
import * as is from "../util/schema.js";
import { editFile } from "./edit-file.js";
import { orAbortReason, runMerged } from "./run-command.js";

/** Bounds of the tools. */
export interface ToolOptions {
  /** Deadline of one command in milliseconds, unless the model asks for less. Default 120 000. */
  timeout?: number;
  /** Bytes of output or of a file that one answer has at most. Default 30 000. */
  maxOutput?: number;
}

/** One tool, as each framework wraps it. */
export interface AgentTool<I> {
  readonly description: string;
  readonly input: is.Schema<I>;
  /** Returns text for the model. What the model can put right is text as well; everything else rejects. */
  run(input: unknown, signal?: AbortSignal): Promise<string>;
}

/** Input of the tool `bash`. */
export interface BashInput {
  command: string;
  timeout_ms?: number;
}

/** Input of the tool `read`. */
export interface ReadInput {
  path: string;
  start_line?: number;
  max_lines?: number;
}

/** Input of the tool `write`. */
export interface WriteInput {
  path: string;
  content: string;
}

/** Input of the tool `edit`. */
export interface EditInput {
  path: string;
  old: string;
  new: string;
  all?: boolean;
}

/** The tools that a coding agent needs. */
export interface AgentTools {
  readonly bash: AgentTool<BashInput>;
  readonly read: AgentTool<ReadInput>;
  readonly write: AgentTool<WriteInput>;
  readonly edit: AgentTool<EditInput>;
}

const TIMEOUT = 120_000;
const MAX_OUTPUT = 30_000;
const MAX_LINES = 2000;
/** How much of a file is looked at for its kind. */
const SNIFFED = 8 << 10;

/** What a model can put right by another call. Everything else is a fault of the sandbox, or an abort. */
const ANSWERS: ReadonlySet<SandboxErrorCode> = new Set([
  ...(["path_confinement", "invalid_argument", "invalid_path", "not_regular_file", "not_found"] as const),
  ...(["command_not_allowed", "permission_denied", "limit_exceeded", "no_space", "conflict", "unsupported"] as const),
]);

const path = is.noted(is.path, { description: "Absolute, or relative to the work directory." });
const line = (description: string): is.Schema<number> => is.noted(is.positive, { description });

const bashInput: is.Schema<BashInput> = is.object({
  command: is.required(is.noted(is.text, { description: "A shell command." })),
  timeout_ms: is.noted(is.timeout, { description: "Kill it after so many milliseconds." }),
});
const readInput: is.Schema<ReadInput> = is.object({
  path: is.required(path),
  start_line: line("First line to return, from 1."),
  max_lines: line(`How many lines to return. Default ${MAX_LINES}.`),
});
const writeInput: is.Schema<WriteInput> = is.object({ path: is.required(path), content: is.required(is.string()) });
const editInput: is.Schema<EditInput> = is.object({
  path: is.required(path),
  old: is.required(is.noted(is.text, { description: "The exact text to replace." })),
  new: is.required(is.string()),
  all: is.noted(is.flag, { description: "Replace every occurrence. Default: there must be exactly one." }),
});

/** Makes the tools of a sandbox. */
export function createAgentTools(sandbox: Sandbox, options: ToolOptions = {}): AgentTools {
  const { timeout = TIMEOUT, maxOutput = MAX_OUTPUT } = options;
  return {
    bash: define(
      `Runs a shell command in ${sandbox.workDir} of a sandbox. Files stay there for later calls; processes end with the command.`,
      bashInput,
      async ({ command, timeout_ms }, signal) => {
        const limit = Math.min(timeout_ms ?? timeout, timeout);
        const result = await runMerged(sandbox, command, { timeout: limit, maxOutput, signal });
        return `exit code ${result.exitCode}\n${result.output}`;
      },
    ),
    read: define("Reads a text file of the sandbox.", readInput, async (input, signal) => {
      const bytes = await sandbox.readBytes(input.path, withSignal(signal));
      if (bytes === null) throw new SandboxError("not_found", `${input.path} does not exist`);
      if (bytes.length === 0) return "[the file is empty]";
      if (bytes.subarray(0, SNIFFED).includes(0)) {
        return `${input.path} is a binary file of ${bytes.length} bytes; look into it with a command`;
      }
      return excerpt(new TextDecoder().decode(bytes), input, maxOutput);
    }),
    write: define(
      "Writes a file of the sandbox, and makes its directories. Replaces what is there.",
      writeInput,
      async ({ path, content }, signal) => {
        await sandbox.writeFile(path, content, withSignal(signal));
        return `wrote ${Buffer.byteLength(content)} bytes to ${path}`;
      },
    ),
    edit: define("Replaces text in a file of the sandbox.", editInput, async (input, signal) => {
      const count = await editFile(sandbox, input, withSignal(signal));
      return `replaced ${countOf(count, "occurrence")} in ${input.path}`;
    }),
  };
}

function define<I>(
  description: string,
  input: is.Schema<I>,
  work: (input: I, signal: AbortSignal | undefined) => Promise<string>,
): AgentTool<I> {
  return {
    description,
    input,
    async run(given, signal) {
      try {
        is.check(given, input, "input");
        return await orAbortReason(signal, () => work(given, signal));
      } catch (error) {
        if (!(error instanceof SandboxError) || !ANSWERS.has(error.code)) throw error;
        return `${error.code}: ${error.message}${error.hint === undefined ? "" : `\nhint: ${error.hint}`}`;
      }
    },
  };
}

/** The lines that were asked for, as many as fit, and what was left out. */
function excerpt(text: string, { path, start_line = 1, max_lines = MAX_LINES }: ReadInput, maxOutput: number): string {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  if (start_line > lines.length) {
    throw new SandboxError(
      "invalid_argument",
      `start_line ${start_line} is after the end: ${path} has ${lines.length} lines`,
    );
  }
  const kept: string[] = [];
  let size = 0;
  for (const each of lines.slice(start_line - 1, start_line - 1 + max_lines)) {
    size += Buffer.byteLength(each) + 1;
    if (size > maxOutput && kept.length > 0) break;
    kept.push(truncate(each, maxOutput));
  }
  const last = start_line - 1 + kept.length;
  const isWhole = start_line === 1 && last === lines.length && size <= maxOutput + 1;
  return isWhole ? text : `${kept.join("\n")}\n[lines ${start_line} to ${last} of ${lines.length}]`;
}

function withSignal(signal: AbortSignal | undefined): { signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}
