import { SandboxError } from "../../../../../contracts/errors.js";
import { progressError } from "./engine-error.js";

const MAX_LINE = 1 << 20;
const TAIL_LINES = 20;

/** One line of what the engine tells while it pulls, builds, loads or pushes. */
export interface ProgressLine {
  /** What is done now: `Pulling fs layer`, `Downloading`, `Pull complete`. */
  readonly status?: string;
  /** The layer that it is about. */
  readonly id?: string;
  readonly progressDetail?: { readonly current?: number; readonly total?: number };
  /** A piece of a build's log. */
  readonly stream?: string;
  /** What came out of it, for example the id of an image. */
  readonly aux?: unknown;
}

/** Reads values that come one JSON text a line, as long as the stream goes. */
export async function* readJsonLines(source: AsyncIterable<Buffer>): AsyncGenerator<unknown, void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of source) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > MAX_LINE) throw new SandboxError("limit_exceeded", "The Docker engine sent an endless line");
    for (const line of lines) if (line.trim() !== "") yield parseLine(line);
  }
  if (rest.trim() !== "") yield parseLine(rest);
}

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch (cause) {
    throw new SandboxError("backend_lost", "The Docker engine sent a line that is no JSON", { cause });
  }
}

/** Reads progress to its end. The engine tells of a failure in the stream, after it has said 200: that is an error here. */
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
