import { toSandboxError } from "../../../contracts/errors.js";
import type { ExecOptions, ExecResult } from "../../../contracts/types.js";
import { failpoint } from "../../machine/failpoint.js";
import { OutputCollector } from "../../util/output-collector.js";
import { type DriverExit, MAX_DRAIN } from "../types.js";
import { commandFailed } from "./command-failed.js";
import { type Feed, feedStdin } from "./feed-stdin.js";
import type { OpenSandboxState } from "./open-sandbox-state.js";
import { ProcessWatch } from "./process-watch.js";
import { type Consumer, Pump } from "./pump.js";
import { toStartSpec } from "./start-spec.js";

/** Runs a checked command and waits for its end: one process, both streams, stdin, deadline and abort. */
export async function runToEnd(state: OpenSandboxState, opts: ExecOptions, operation: string): Promise<ExecResult> {
  const timeout = opts.timeout ?? state.operationTimeout;
  const stdin = opts.stdin === "" ? undefined : opts.stdin;
  const cap = opts.maxOutput ?? state.maxOutput;
  const spec = {
    ...toStartSpec(state, opts, stdin === undefined ? "none" : "pipe", timeout),
    kept: {
      ...(opts.onStdout === undefined && { stdout: cap }),
      ...(opts.onStderr === undefined && { stderr: cap }),
    },
  };
  const start = performance.now();
  const watch = new ProcessWatch(state, { timeout, killGrace: opts.killGrace ?? 0, signal: opts.signal, operation });
  const stdout = new OutputCollector(cap);
  const stderr = new OutputCollector(cap);
  const result = (exit: DriverExit): ExecResult => {
    const out = stdout.result(opts.raw === true, exit.leftOut?.stdout);
    const err = stderr.result(opts.raw === true, exit.leftOut?.stderr);
    return {
      exitCode: watch.exitCode(exit),
      ...(exit.signal === undefined ? undefined : { signal: exit.signal }),
      stdout: out.text,
      stderr: err.text,
      truncated: { stdout: out.truncated, stderr: err.truncated },
      bytes: { stdout: out.bytes, stderr: err.bytes },
      ...(opts.raw === true ? { raw: { stdout: out.raw, stderr: err.raw } } : undefined),
      durationMs: performance.now() - start,
      timedOut: watch.timedOut,
      ...(exit.oomKilled === undefined ? undefined : { oomKilled: exit.oomKilled }),
    };
  };
  let feed: Feed | undefined;
  try {
    state.emit?.("exec", opts.argv.join(" "), opts.env);
    const process = await watch.start(spec);
    await failpoint("exec.started")?.catch((error: unknown) => watch.fail(error));
    const pumps = [
      new Pump(process.stdout, stdout, consumerOf(opts, "onStdout"), consumerFailure(watch, "onStdout")),
      new Pump(process.stderr, stderr, consumerOf(opts, "onStderr"), consumerFailure(watch, "onStderr")),
    ] as const;
    const releasePumps = (): void => {
      for (const pump of pumps) pump.detach();
    };
    if (watch.killed) releasePumps();
    else watch.onKill = releasePumps;
    const streams = Promise.all([pumps[0].done, pumps[1].done]);
    streams.catch((error: unknown) => watch.fail(error));
    if (stdin !== undefined) {
      feed = feedStdin(process, stdin);
      feed.done.catch((cause: unknown) => {
        const { code, message } = toSandboxError(cause);
        void watch.stop({ code: code === "internal" ? "aborted" : code, message: `stdin failed: ${message}`, cause });
      });
    }
    const exit = await watch.exit;
    if (!pumps[0].ended || !pumps[1].ended) await drain(streams, pumps);
    if (watch.reason !== undefined) throw watch.stopError(watch.reason, result(exit));
    const ended = result(exit);
    state.emit?.(
      "exit",
      `${opts.argv[0]} ended with ${ended.exitCode}${ended.timedOut ? ", timed out" : ""}`,
      opts.env,
    );
    if (opts.check === true && (ended.exitCode !== 0 || ended.timedOut)) {
      throw commandFailed(opts, timeout, operation, ended, state.hidden);
    }
    return ended;
  } finally {
    feed?.stop();
    watch.close();
  }
}

function consumerOf(opts: ExecOptions, name: "onStdout" | "onStderr"): Consumer | undefined {
  return opts[name] === undefined ? undefined : (chunk) => opts[name]?.(chunk);
}

function consumerFailure(watch: ProcessWatch, name: string): (error: unknown) => void {
  return (cause) => {
    const message = cause instanceof Error ? cause.message : String(cause);
    void watch.stop({ code: "aborted", message: `The command was ended because ${name} threw: ${message}`, cause });
  };
}

/**
 * Waits for the streams of a process that has ended. A stream that the driver leaves open is cut off after `MAX_DRAIN`. A consumer that is still
 * busy may take until the deadline.
 */
async function drain(streams: Promise<unknown>, pumps: readonly Pump[]): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const cut = new Promise<void>((resolve) => {
    timer = setInterval(() => {
      if (!pumps.some((pump) => pump.delivering)) resolve();
    }, MAX_DRAIN);
  });
  try {
    await Promise.race([streams, cut]);
  } finally {
    clearInterval(timer);
  }
}
