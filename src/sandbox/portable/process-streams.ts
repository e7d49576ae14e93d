import { SandboxError } from "../../../contracts/errors.js";
import type { ProcessStream, SpawnOptions } from "../../../contracts/types.js";
import { invalidArgument } from "../../util/schema.js";
import type { ProcessWatch } from "./process-watch.js";
import type { TrackedProcess } from "./tracked-process.js";

/** Largest chunk of a stream that follows a process. */
const CHUNK = 64 << 10;

/** One output of a process: what is read goes to `keep`, and `over` is called when nothing more can be read. */
export interface KeptOutput {
  readonly source: AsyncIterable<Uint8Array>;
  keep(chunk: Uint8Array): void;
  over(): void;
}

/** The output as a stream. The process is slowed down while nobody reads. */
export function toReadable(output: KeptOutput, failure: (error: unknown) => unknown): ReadableStream<Uint8Array> {
  const iterator = output.source[Symbol.asyncIterator]();
  const next = async (): Promise<Uint8Array | undefined> => {
    const { done, value } = await iterator.next();
    if (done === true) output.over();
    else output.keep(value);
    return done === true ? undefined : value;
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const chunk = await next();
          if (chunk === undefined) controller.close();
          else controller.enqueue(chunk);
        } catch (error) {
          output.over();
          controller.error(failure(error));
        }
      },
      // Nobody reads any more, but that must not block the process.
      cancel() {
        const discard = async (): Promise<void> => {
          while ((await next()) !== undefined);
        };
        discard().catch(() => output.over());
      },
    },
    { highWaterMark: 0 },
  );
}

/** Gives the output to the caller's consumer, and returns a stream that is empty. */
export function consumed(
  output: KeptOutput,
  consumer: NonNullable<SpawnOptions["onStdout"]>,
  name: string,
  watch: ProcessWatch,
): ReadableStream<Uint8Array> {
  const run = async (): Promise<void> => {
    for await (const chunk of output.source) {
      output.keep(chunk);
      try {
        await consumer(chunk);
      } catch (cause) {
        const message = cause instanceof Error ? cause.message : String(cause);
        void watch.stop({ code: "aborted", message: `The process was ended because ${name} threw: ${message}`, cause });
        return;
      }
    }
  };
  run()
    .catch((error: unknown) => watch.fail(error))
    .finally(() => output.over());
  return new ReadableStream<Uint8Array>({ start: (controller) => controller.close() });
}

/** Reads the output as it comes, whoever listens. */
export function drain(output: KeptOutput, watch: ProcessWatch): void {
  const run = async (): Promise<void> => {
    for await (const chunk of output.source) output.keep(chunk);
  };
  run()
    .catch((error: unknown) => watch.fail(error))
    .finally(() => output.over());
}

/** Follows the kept output of a process from a position on, until `stop`. It fails if it falls behind so far that output is gone. */
export function follow(
  process: TrackedProcess,
  stream: ProcessStream,
  from: number,
  failure: (error: unknown) => unknown,
  stop: AbortController = new AbortController(),
): ReadableStream<Uint8Array> {
  let cursor = from;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const wait = Number.POSITIVE_INFINITY;
          const part = await process.read({ cursor, stream, maxBytes: CHUNK, wait, signal: stop.signal });
          if (part.missed > 0) throw fallenBehind(process.id, stream, part.missed);
          cursor = part.cursor;
          if (part.data.length > 0) controller.enqueue(part.data);
          if (part.ended) controller.close();
        } catch (error) {
          if (stop.signal.aborted) controller.close();
          else controller.error(failure(error));
        }
      },
      cancel: () => stop.abort(),
    },
    { highWaterMark: 0 },
  );
}

function fallenBehind(id: string, stream: ProcessStream, missed: number): SandboxError {
  return new SandboxError("limit_exceeded", `${missed} bytes of the ${stream} of process ${id} were dropped unread`, {
    hint: "read faster, or use read() of the process, which goes on and says how much is missed",
  });
}

/** The input of a process as a stream. After the end of the process, bytes are dropped. */
export function toWritable(process: TrackedProcess): WritableStream<Uint8Array> {
  return new WritableStream<Uint8Array>({
    write: async (chunk) => {
      if (!((chunk as unknown) instanceof Uint8Array))
        throw invalidArgument("stdin", "chunks of type Uint8Array", chunk);
      await process.live?.writeStdin(chunk);
    },
    close: () => process.live?.closeStdin(),
    abort: () => process.live?.closeStdin(),
  });
}
