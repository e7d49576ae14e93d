import { SandboxError } from "../../../../../contracts/errors.js";
import { progressError } from "./engine-error.js";

const MAX_LINE = 1 << 20;
const TAIL_LINES = 20;

/** One line of the engine's progress of a pull, build, load or push. */
export interface ProgressLine {
  /** The current step: `Pulling fs layer`, `Downloading`, `Pull complete`. */
  readonly status?: string;
  /** The layer. */
  readonly id?: string;
  readonly progressDetail?: { readonly current?: number; readonly total?: number };
  /** A piece of a build's log. */
  readonly stream?: string;
  /** A result, for example the id of an image. */
  readonly aux?: unknown;
}

/** Reads a stream of JSON lines. */
export async function* readJsonLines(source: AsyncIterable<Buffer>): AsyncGenerator<unknown, void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of source) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > MAX_LINE)
      throw new SandboxError("limit_exceeded", `The Docker engine sent a line of more than ${MAX_LINE} bytes`);
    for (const line of lines) if (line.trim() !== "") yield parseLine(line);
  }
  if (rest.trim() !== "") yield parseLine(rest);
}

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch (cause) {
    throw new SandboxError("backend_lost", "The Docker engine sent a line that is not JSON", { cause });
  }
}

/** Reads a progress stream. The engine reports failures in it, after a status of 200: they are thrown. */
export async function* readProgress(source: AsyncIterable<Buffer>, what: string): AsyncGenerator<ProgressLine, void> {
  const tail: string[] = [];
  try {
    for await (const value of readJsonLines(source)) {
      if (typeof value !== "object" || value === null) continue;
      const { error, errorDetail } = value as { error?: unknown; errorDetail?: { message?: unknown } };
      const fault = errorDetail?.message ?? error;
      if (fault !== undefined) throw progressError(what, String(fault), tail);
      const line = value as ProgressLine;
      if (typeof line.stream === "string" && line.stream.trim() !== "") tail.push(line.stream.trimEnd());
      if (tail.length > TAIL_LINES) tail.shift();
      yield line;
    }
  } catch (error) {
    if (error instanceof SandboxError) throw error;
    throw new SandboxError("backend_lost", `The Docker engine was lost during ${what}`, {
      backend: "docker",
      cause: error,
    });
  }
}
