import { constants } from "node:os";
import { toSandboxError } from "../../../contracts/errors.js";
import type { ProcessExit, SandboxProcess, SpawnOptions } from "../../../contracts/types.js";
import { invalidArgument } from "../../util/schema.js";
import type { DriverProcess } from "../types.js";
import type { OpenSandboxState } from "./open-sandbox-state.js";
import { ProcessWatch } from "./process-watch.js";
import { toStartSpec } from "./start-spec.js";

let lastId = 0;

/**
 * Starts a long-running process and returns it in the form that callers see.
 *
 * With `onStdout` or `onStderr` the output goes there, and the stream of that name is empty.
 */
export async function startProcess(state: OpenSandboxState, opts: SpawnOptions): Promise<SandboxProcess> {
  const withStdin = opts.stdin === "pipe" || opts.pty !== undefined;
  const spec = toStartSpec(state, opts, withStdin ? "pipe" : "none", opts.timeout);
  const start = performance.now();
  const { timeout, killGrace = 0, signal } = opts;
  const watch = new ProcessWatch(state, { timeout, killGrace, signal, operation: "spawn" });
  let process: DriverProcess;
  try {
    process = await watch.start(spec);
  } catch (error) {
    watch.close();
    throw error;
  }
  const id = `p${++lastId}`;
  state.processes.set(id, { id, argv: [...opts.argv], startedAt: new Date().toISOString() });
  state.emit?.("exec", opts.argv.join(" "), opts.env);

  const forget = (): void => {
    watch.close();
    state.processes.delete(id);
  };
  watch.exit.then(forget, forget);
  const ended = watch.exit.then((exit): ProcessExit => {
    const result: ProcessExit = {
      exitCode: watch.exitCode(exit),
      ...(exit.signal === undefined ? undefined : { signal: exit.signal }),
      timedOut: watch.timedOut,
      durationMs: performance.now() - start,
      ...(exit.oomKilled === undefined ? undefined : { oomKilled: exit.oomKilled }),
    };
    state.emit?.("exit", `${opts.argv[0]} ended with ${result.exitCode}`, opts.env);
    if (watch.reason !== undefined) throw watch.stopError(watch.reason, result);
    return result;
  });
  const failure = (error: unknown): unknown =>
    toSandboxError(error, { backend: state.driver.backend, operation: "spawn" });
  ended.catch(() => undefined);

  const { onStdout, onStderr } = opts;
  return {
    id,
    stdout: onStdout ? consumed(process.stdout, onStdout, "onStdout", watch) : toReadable(process.stdout, failure),
    stderr: onStderr ? consumed(process.stderr, onStderr, "onStderr", watch) : toReadable(process.stderr, failure),
    ...(withStdin ? { stdin: toWritable(process) } : undefined),
    kill: async (name = "SIGTERM") => {
      if (!Object.hasOwn(constants.signals, name)) throw invalidArgument("signal", "the name of a signal", name);
      if (name === "SIGKILL") watch.kill();
      else watch.signal(name);
    },
    wait: () =>
      ended.catch((error: unknown) => {
        throw failure(error);
      }),
    ...(process.resize === undefined || opts.pty === undefined
      ? undefined
      : {
          resize: async (cols: number, rows: number) => {
            for (const size of [cols, rows]) {
              if (!Number.isInteger(size) || size < 1 || size > 65_535) {
                throw invalidArgument("size", "whole numbers from 1 to 65535", size);
              }
            }
            await process.resize?.(cols, rows);
          },
        }),
    [Symbol.asyncDispose]: async () => {
      watch.kill();
      await ended.catch(() => undefined);
    },
  };
}

function toReadable(
  source: AsyncIterable<Uint8Array>,
  failure: (error: unknown) => unknown,
): ReadableStream<Uint8Array> {
  const iterator = source[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await iterator.next();
          if (done === true) controller.close();
          else controller.enqueue(value);
        } catch (error) {
          controller.error(failure(error));
        }
      },
      // Nobody reads any more, but that must not block the process.
      cancel: () => void discard(iterator).catch(() => undefined),
    },
    { highWaterMark: 0 },
  );
}

async function discard(iterator: AsyncIterator<Uint8Array>): Promise<void> {
  while ((await iterator.next()).done !== true);
}

function consumed(
  source: AsyncIterable<Uint8Array>,
  consumer: NonNullable<SpawnOptions["onStdout"]>,
  name: string,
  watch: ProcessWatch,
): ReadableStream<Uint8Array> {
  const run = async (): Promise<void> => {
    for await (const chunk of source) {
      try {
        await consumer(chunk);
      } catch (cause) {
        const message = cause instanceof Error ? cause.message : String(cause);
        void watch.stop({ code: "aborted", message: `The process was ended because ${name} threw: ${message}`, cause });
        return;
      }
    }
  };
  run().catch((error: unknown) => watch.fail(error));
  return new ReadableStream<Uint8Array>({ start: (controller) => controller.close() });
}

function toWritable(process: DriverProcess): WritableStream<Uint8Array> {
  return new WritableStream<Uint8Array>({
    write: async (chunk) => {
      if (!((chunk as unknown) instanceof Uint8Array))
        throw invalidArgument("stdin", "chunks of type Uint8Array", chunk);
      await process.writeStdin(chunk);
    },
    close: () => process.closeStdin(),
    abort: () => process.closeStdin(),
  });
}
