import { setImmediate } from "node:timers/promises";
import { SandboxError } from "../../../contracts/errors.js";
import type { ExecOptions } from "../../../contracts/types.js";
import { describe } from "../../util/schema.js";
import type { DriverProcess } from "../types.js";

const SLICE = 64 * 1024;
/** After so many chunks the event loop gets a turn: an iterable that never waits must not delay the deadline. */
const BREATH = 16;

/** A standard input that is written while the output is read. */
export interface Feed {
  /** Rejects if the caller's iterable fails. A process that stops reading is not a failure. */
  readonly done: Promise<void>;
  /** Stops asking the caller's iterable for more. */
  stop(): void;
}

/** Writes a caller's standard input to a process, as fast as it reads, and closes it. */
export function feedStdin(process: DriverProcess, stdin: NonNullable<ExecOptions["stdin"]>): Feed {
  const feed = { stopped: false };
  if (typeof stdin === "string" || stdin instanceof Uint8Array) {
    const bytes = typeof stdin === "string" ? Buffer.from(stdin) : stdin;
    return {
      done: writePiece(process, bytes, feed).then(() => process.closeStdin()),
      stop: () => {
        feed.stopped = true;
      },
    };
  }
  const iterator = stdin[Symbol.asyncIterator]();
  return {
    done: writeEach(process, iterator, feed).then(() => process.closeStdin()),
    stop: () => {
      if (feed.stopped) return;
      feed.stopped = true;
      iterator.return?.().then(undefined, () => undefined);
    },
  };
}

async function writeEach(
  process: DriverProcess,
  iterator: AsyncIterator<Uint8Array>,
  feed: { stopped: boolean },
): Promise<void> {
  for (let count = 1; !feed.stopped; count++) {
    if (count % BREATH === 0) await setImmediate();
    const { done, value } = await iterator.next();
    if (done === true) {
      feed.stopped = true;
      return;
    }
    if (!((value as unknown) instanceof Uint8Array)) {
      throw new SandboxError("invalid_argument", `expected chunks of type Uint8Array, got ${describe(value)}`);
    }
    await writePiece(process, value, feed);
  }
}

async function writePiece(process: DriverProcess, bytes: Uint8Array, feed: { stopped: boolean }): Promise<void> {
  for (let from = 0; from < bytes.length && !feed.stopped; from += SLICE) {
    await process.writeStdin(bytes.subarray(from, from + SLICE));
  }
}
