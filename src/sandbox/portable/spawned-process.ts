import { toSandboxError } from "../../../contracts/errors.js";
import type { ProcessExit, ProcessStream, SandboxProcess, SpawnOptions } from "../../../contracts/types.js";
import { type DriverExit, type DriverProcess, MAX_DRAIN } from "../types.js";
import type { OpenSandboxState } from "./open-sandbox-state.js";
import { signalOf, sizeOf } from "./process-arguments.js";
import { consumed, drain, follow, type KeptOutput, toReadable, toWritable } from "./process-streams.js";
import { ProcessWatch } from "./process-watch.js";
import { toStartSpec } from "./start-spec.js";
import { TrackedProcess } from "./tracked-process.js";

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
  state.emit?.("exec", opts.argv.join(" "), opts.env);
  const toExit = (exit: DriverExit): ProcessExit => ({
    exitCode: watch.exitCode(exit),
    ...(exit.signal === undefined ? undefined : { signal: exit.signal }),
    timedOut: watch.timedOut,
    durationMs: performance.now() - start,
    ...(exit.oomKilled === undefined ? undefined : { oomKilled: exit.oomKilled }),
  });
  const ended = watch.exit.then((exit): ProcessExit => {
    const result = toExit(exit);
    tracked.exit = result;
    state.emit?.("exit", `${opts.argv[0]} ended with ${result.exitCode}`, opts.env);
    if (watch.reason !== undefined) throw watch.stopError(watch.reason, result);
    return result;
  });
  ended.catch(() => undefined);
  const tracked: TrackedProcess = new TrackedProcess({
    id: `p${++lastId}`,
    argv: opts.argv,
    hasStdin: withStdin,
    hasTerminal: process.resize !== undefined && opts.pty !== undefined,
    inBackground: opts.background === true,
    ended,
    live: {
      kill: (name) => (name === "SIGKILL" ? watch.kill() : watch.signal(name)),
      writeStdin: (chunk) => process.writeStdin(chunk),
      closeStdin: () => process.closeStdin(),
      resize: async (cols, rows) => await process.resize?.(cols, rows),
    },
  });
  state.processes.add(tracked);
  return toOwned(state, opts, watch, process, tracked);
}

/** The process as the one who started it sees it: disposing it kills the tree. */
function toOwned(
  state: OpenSandboxState,
  opts: SpawnOptions,
  watch: ProcessWatch,
  process: DriverProcess,
  tracked: TrackedProcess,
): SandboxProcess {
  const failure = failureOf(state);
  const open = new Set<ProcessStream>(["stdout", "stderr"]);
  let isOver: () => void = () => undefined;
  const over = new Promise<void>((resolve) => {
    isOver = resolve;
  });
  const output = (stream: ProcessStream): KeptOutput => ({
    source: process[stream],
    keep: (chunk) => tracked.add(stream, chunk),
    over: () => {
      open.delete(stream);
      if (open.size === 0) isOver();
    },
  });
  const read = (stream: ProcessStream, name: "onStdout" | "onStderr"): ReadableStream<Uint8Array> => {
    const consumer = opts[name];
    if (consumer !== undefined) return consumed(output(stream), consumer, name, watch);
    if (opts.background !== true) return toReadable(output(stream), failure);
    drain(output(stream), watch);
    return follow(tracked, stream, 0, failure);
  };
  const [stdout, stderr] = [read("stdout", "onStdout"), read("stderr", "onStderr")];
  const forget = (): void => {
    watch.close();
    tracked.hasEnded = true;
    state.processes.ended(tracked);
    // What nobody reads is not waited for.
    const timer = setTimeout(isOver, MAX_DRAIN);
    if (!tracked.inBackground) timer.unref();
    void over.then(() => {
      clearTimeout(timer);
      tracked.complete();
    });
  };
  watch.exit.then(forget, forget);
  const dispose = async (): Promise<void> => {
    watch.kill();
    await tracked.ended.catch(() => undefined);
  };
  return { ...toProcess(state, tracked), stdout, stderr, [Symbol.asyncDispose]: dispose };
}

/** The process as one sees it who did not start it: output from now on, and disposing it leaves the process running. */
export function attachTo(state: OpenSandboxState, tracked: TrackedProcess): SandboxProcess {
  const failure = failureOf(state);
  const stops = { stdout: new AbortController(), stderr: new AbortController() };
  const read = (stream: ProcessStream): ReadableStream<Uint8Array> =>
    follow(tracked, stream, tracked.written(stream), failure, stops[stream]);
  const [stdout, stderr] = [read("stdout"), read("stderr")];
  const dispose = async (): Promise<void> => {
    stops.stdout.abort();
    stops.stderr.abort();
  };
  return { ...toProcess(state, tracked), stdout, stderr, [Symbol.asyncDispose]: dispose };
}

type Controls = Omit<SandboxProcess, "stdout" | "stderr" | typeof Symbol.asyncDispose>;

function toProcess(state: OpenSandboxState, tracked: TrackedProcess): Controls {
  return {
    id: tracked.id,
    ...(tracked.hasStdin ? { stdin: toWritable(tracked) } : undefined),
    kill: async (name = "SIGTERM") => {
      const signal = signalOf(name);
      tracked.live?.kill(signal);
    },
    wait: () => waitFor(state, tracked),
    ...(tracked.hasTerminal
      ? {
          resize: async (cols: number, rows: number) => {
            const size = [sizeOf(cols), sizeOf(rows)] as const;
            await tracked.live?.resize(...size);
          },
        }
      : undefined),
  };
}

/** Waits for the end of a process, and in the background for the rest of its output. */
export async function waitFor(state: OpenSandboxState, tracked: TrackedProcess): Promise<ProcessExit> {
  try {
    return await tracked.ended;
  } catch (error) {
    throw failureOf(state)(error);
  } finally {
    if (tracked.inBackground) await tracked.completed;
  }
}

function failureOf(state: OpenSandboxState): (error: unknown) => unknown {
  return (error) => toSandboxError(error, { backend: state.driver.backend, operation: "spawn" });
}
