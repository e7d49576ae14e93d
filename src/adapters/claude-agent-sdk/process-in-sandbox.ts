import { EventEmitter } from "node:events";
import { PassThrough, Readable, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { SpawnedProcess } from "@anthropic-ai/claude-agent-sdk";
import { SandboxError } from "../../../contracts/errors.js";
import type { Sandbox } from "../../../contracts/sandbox.js";
import type { SandboxProcess, SpawnOptions } from "../../../contracts/types.js";

/**
 * A process of a sandbox with the face of a child process. The SDK wants its streams before it can have started, so they are there at once and joined
 * to the process when it has.
 */
export class ProcessInSandbox extends EventEmitter implements SpawnedProcess {
  readonly stdin: PassThrough = new PassThrough();
  readonly stdout: PassThrough = new PassThrough();
  readonly stderr: PassThrough = new PassThrough();
  exitCode: number | null = null;
  signalCode: NodeJS.Signals | null = null;
  killed = false;
  readonly #started: Promise<SandboxProcess>;

  constructor(sandbox: Sandbox, options: SpawnOptions, signal: AbortSignal) {
    super();
    // What breaks a stream is what ended the process, and that is an event of its own.
    for (const stream of [this.stdin, this.stdout, this.stderr]) stream.on("error", () => undefined);
    this.#started = sandbox.spawn({ ...options, signal });
    void this.#follow(signal);
  }

  /** Sends a signal; SIGKILL ends everything that it started. False if it has ended. */
  kill(signal: NodeJS.Signals | number = "SIGTERM"): boolean {
    if (this.exitCode !== null || this.signalCode !== null) return false;
    this.killed = true;
    const name = typeof signal === "number" ? "SIGKILL" : signal;
    // If it never started, it says so by the event `error`.
    void this.#started.then(async (process) => await process.kill(name)).catch(() => undefined);
    return true;
  }

  async #follow(signal: AbortSignal): Promise<void> {
    try {
      const process = await this.#started;
      if (process.stdin !== undefined)
        void pipeline(this.stdin, Writable.fromWeb(process.stdin)).catch(() => undefined);
      const [exit] = await Promise.all([
        process.wait(),
        pipeline(Readable.fromWeb(process.stdout), this.stdout),
        pipeline(Readable.fromWeb(process.stderr), this.stderr),
      ]);
      if (exit.signal === undefined) this.exitCode = exit.exitCode;
      else this.signalCode = exit.signal as NodeJS.Signals;
      this.emit("exit", this.exitCode, this.signalCode);
      this.emit("close", this.exitCode, this.signalCode);
    } catch (error) {
      this.exitCode ??= 1;
      const isAborted = error instanceof SandboxError && error.code === "aborted";
      for (const stream of [this.stdin, this.stdout, this.stderr]) stream.destroy();
      this.emit("error", isAborted ? abortError(signal) : error);
    }
  }
}

/** What Node's own `spawn` reports when its signal is aborted. */
function abortError(signal: AbortSignal): Error {
  const error = new Error("The operation was aborted", { cause: signal.reason });
  return Object.assign(error, { name: "AbortError", code: "ABORT_ERR" });
}
