import { setImmediate } from "node:timers/promises";
import { SandboxError } from "../../../../contracts/errors.js";
import type { ReadStreamOptions } from "../../../../contracts/types.js";
import { describe } from "../../../util/schema.js";
import { MAX_FILE_BYTES } from "../../types.js";
import { type CallRunner, within } from "../call-runner.js";
import type { OpenSandboxState } from "../open-sandbox-state.js";
import { resolveInside } from "../sandbox-path.js";
import { untilAborted } from "./until-aborted.js";

const OPERATION = "readStream";
const SLICE = 64 << 10;
/** After so many chunks the event loop gets a turn: a source that never waits must not delay the deadline. */
const BREATH = 16;

/** Writes a file from a caller's stream, whole or not at all. */
export async function writeStream(
  { files }: OpenSandboxState,
  file: { path: string; source: AsyncIterable<Uint8Array>; mode: number | undefined },
  signal: AbortSignal,
): Promise<void> {
  const source = chunksOf(untilAborted(file.source, signal));
  if (files.writeStream !== undefined) {
    await files.writeStream({ ...file, source }, { signal });
    return;
  }
  const content = await collect(source, file.path);
  await files.write([{ path: file.path, content, mode: file.mode }], { signal });
}

async function* chunksOf(source: AsyncIterable<unknown>): AsyncGenerator<Uint8Array> {
  let count = 0;
  for await (const chunk of source) {
    if (!(chunk instanceof Uint8Array)) {
      throw new SandboxError(
        "invalid_argument",
        `Invalid content: expected chunks of Uint8Array, got ${describe(chunk)}`,
      );
    }
    if (++count % BREATH === 0) await setImmediate();
    if (chunk.length > 0) yield chunk;
  }
}

async function collect(source: AsyncIterable<Uint8Array>, path: string): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of source) {
    length += chunk.length;
    if (length > MAX_FILE_BYTES) {
      throw new SandboxError("limit_exceeded", `The content of ${path} is larger than ${MAX_FILE_BYTES} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length);
}

/** Opens a file to be read as a stream; null if it does not exist. */
export async function readStream(
  state: OpenSandboxState,
  calls: CallRunner,
  path: string,
  opts: ReadStreamOptions,
  signal: AbortSignal,
): Promise<ReadableStream<Uint8Array> | null> {
  const { files } = state;
  const resolved = resolveInside(state, path, "path");
  const { start = 0, end } = opts;
  const range = { start, ...(end !== undefined && { length: end - start }) };
  const source =
    files.readStream === undefined
      ? await readPart(state, resolved, range, signal)
      : await files.readStream(resolved, { ...range, signal });
  if (source === null) return null;
  const iterator = source[Symbol.asyncIterator]();
  if (!signal.aborted) return toStream(state, calls, iterator, opts.signal);
  // The caller has given up, and nobody else would free it.
  await iterator.return?.();
  throw signal.reason;
}

async function readPart(
  { files }: OpenSandboxState,
  path: string,
  { start, length }: { start: number; length?: number },
  signal: AbortSignal,
): Promise<AsyncIterable<Uint8Array> | null> {
  const bytes = await files.read(path, { signal });
  if (bytes === null) return null;
  return slicesOf(bytes.subarray(start, length === undefined ? undefined : start + length));
}

async function* slicesOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += SLICE) yield bytes.subarray(at, at + SLICE);
}

/** The file is read only when the caller asks for more. */
function toStream(
  state: OpenSandboxState,
  calls: CallRunner,
  iterator: AsyncIterator<Uint8Array>,
  given: AbortSignal | undefined,
): ReadableStream<Uint8Array> {
  const free = async (): Promise<void> => {
    await iterator.return?.();
  };
  const freeAside = (): void => {
    free().catch(() => undefined);
  };
  given?.addEventListener("abort", freeAside, { once: true });
  const settle = (): void => given?.removeEventListener("abort", freeAside);
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const next = await within(state.operationTimeout, OPERATION, () => iterator.next(), given);
          state.onUsed?.();
          if (next.done !== true) {
            controller.enqueue(next.value);
            return;
          }
          settle();
          controller.close();
        } catch (error) {
          settle();
          freeAside();
          throw calls.failure(error, OPERATION);
        }
      },
      async cancel() {
        settle();
        await free();
      },
    },
    { highWaterMark: 0 },
  );
}
