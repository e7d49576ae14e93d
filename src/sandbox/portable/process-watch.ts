import { SandboxError, toSandboxError } from "../../../contracts/errors.js";
import type { DriverExit, DriverProcess, StartSpec } from "../types.js";
import { abortMessage } from "./abort-message.js";
import type { OpenSandboxState, Stoppable, StopReason } from "./open-sandbox-state.js";

/**
 * How long a driver may take to confirm that a killed tree is gone, in milliseconds. After a deadline no driver gets longer, because a call must
 * return within two seconds of it. Otherwise, a driver that can't be sure to kill everything may wait for output that an escaped process holds
 * open.
 */
const LOST_AFTER = { soon: 1_500, late: 5_000 };

/** What bounds a process. */
export interface WatchOptions {
  timeout: number | undefined;
  killGrace: number;
  signal: AbortSignal | undefined;
  operation: string;
}

/**
 * Enforces the deadline, the abort signal and the teardown for one process of a driver.
 *
 * The deadline counts from construction, so it includes a slow start.
 */
export class ProcessWatch implements Stoppable {
  /** Settles when the tree is gone; rejects if that can't be known. */
  readonly exit: Promise<DriverExit>;
  timedOut = false;
  reason: StopReason | undefined;
  /** Called once, when the tree is killed or would have been. */
  onKill: (() => void) | undefined;
  readonly #state: OpenSandboxState;
  readonly #options: WatchOptions;
  readonly #onAbort: (() => void) | undefined;
  #process: DriverProcess | undefined;
  #resolve!: (exit: DriverExit) => void;
  #reject!: (error: unknown) => void;
  readonly #unwanted = new AbortController();
  #deadline: NodeJS.Timeout | undefined;
  #grace: NodeJS.Timeout | undefined;
  #lost: NodeJS.Timeout | undefined;
  #exited = false;
  #killed = false;

  constructor(state: OpenSandboxState, options: WatchOptions) {
    this.#state = state;
    this.#options = options;
    this.exit = new Promise<DriverExit>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    const { signal, timeout } = options;
    if (signal?.aborted) throw new SandboxError("aborted", abortMessage(signal), { cause: signal.reason });
    if (signal !== undefined) {
      this.#onAbort = () => {
        void this.stop({ code: "aborted", message: abortMessage(signal), cause: signal.reason });
      };
      signal.addEventListener("abort", this.#onAbort, { once: true });
    }
    if (timeout !== undefined) this.#deadline = setTimeout(() => this.#expire(), timeout);
    state.running.add(this);
  }

  get killed(): boolean {
    return this.#killed;
  }

  /** Starts the process. Rejects if it can't be started, or not within the deadline plus the time to confirm a kill. */
  async start(spec: StartSpec): Promise<DriverProcess> {
    const unwanted = this.#unwanted;
    // A signal costs more than the rest of a start, and few starts wait for anything.
    const withSignal = {
      ...spec,
      get signal() {
        return unwanted.signal;
      },
    };
    const start = this.#killed ? Promise.resolve(neverStarted()) : this.#state.driver.start(withSignal);
    const started = start.catch((error: unknown) => {
      if (this.#killed && error instanceof SandboxError && error.code === "aborted") return neverStarted();
      throw error;
    });
    const starting = started.then((process) => this.#adopt(process));
    starting.catch((error: unknown) => {
      this.#exited = true;
      this.#reject(error);
    });
    await Promise.race([starting, this.exit]);
    return starting;
  }

  #adopt(process: DriverProcess): DriverProcess {
    this.#process = process;
    process.wait().then(
      (exit) => {
        this.#exited = true;
        // This process was too busy to see the deadline; its timer has yet to fire.
        if (exit.timedOut === true && this.#options.timeout !== undefined && this.reason === undefined)
          this.timedOut = true;
        this.#resolve(exit);
        clearTimeout(this.#lost);
        clearTimeout(this.#grace);
      },
      (error: unknown) => {
        this.#exited = true;
        this.#reject(error);
      },
    );
    if (this.#killed) this.signal("SIGKILL");
    else if (this.timedOut) this.signal("SIGTERM");
    return process;
  }

  /** Sends a signal. If the driver fails to, the kill is never confirmed, and that is noticed. */
  signal(name: string): void {
    if (this.#exited) return;
    this.#process?.kill(name).catch(() => undefined);
  }

  /** Kills the whole tree, and gives the driver a limited time to confirm it. */
  kill(): void {
    if (this.#killed) return;
    this.#killed = true;
    clearTimeout(this.#grace);
    clearTimeout(this.#deadline);
    this.onKill?.();
    if (this.#exited) return;
    this.#unwanted.abort();
    this.signal("SIGKILL");
    const { killTree } = this.#state.driver.capabilities;
    const patience = this.timedOut || killTree === "complete" ? LOST_AFTER.soon : LOST_AFTER.late;
    this.#lost = setTimeout(() => {
      const message = `The backend did not confirm within ${patience} ms that a killed command is gone`;
      this.#reject(new SandboxError("backend_lost", message));
    }, patience);
  }

  stop(reason: StopReason): Promise<void> {
    // The first reason wins: after the deadline the call is a timeout, whatever else goes wrong.
    if (!this.timedOut) this.reason ??= reason;
    this.kill();
    return this.exit.then(
      () => undefined,
      () => undefined,
    );
  }

  #expire(): void {
    this.timedOut = true;
    if (this.#options.killGrace === 0 || this.#exited) {
      this.kill();
      return;
    }
    this.signal("SIGTERM");
    this.#grace = setTimeout(() => this.kill(), this.#options.killGrace);
  }

  /** The exit code that the caller sees: after a deadline always 137 or 143, even if the program handled SIGTERM. */
  exitCode(exit: DriverExit): number {
    if (!this.timedOut || exit.exitCode === 137 || exit.exitCode === 143) return exit.exitCode;
    return this.#killed ? 137 : 143;
  }

  /** The error for why the process was stopped. */
  stopError(reason: StopReason, partial: unknown): SandboxError {
    return new SandboxError(reason.code, reason.message, {
      backend: this.#state.driver.backend,
      operation: this.#options.operation,
      cause: reason.cause,
      partial,
    });
  }

  /** Stops the process because its driver failed. */
  fail(error: unknown): void {
    const { code, message } = toSandboxError(error);
    void this.stop({ code, message, cause: error });
  }

  /** Removes timers and listeners. */
  close(): void {
    clearTimeout(this.#deadline);
    clearTimeout(this.#grace);
    clearTimeout(this.#lost);
    if (this.#onAbort !== undefined) this.#options.signal?.removeEventListener("abort", this.#onAbort);
    this.#state.running.delete(this);
    this.#state.onUsed?.();
  }
}

/** Stands for a command that was ended before the driver had started it. */
function neverStarted(): DriverProcess {
  const nothing = async function* (): AsyncGenerator<Uint8Array> {};
  return {
    stdout: nothing(),
    stderr: nothing(),
    writeStdin: async () => undefined,
    closeStdin: async () => undefined,
    kill: async () => undefined,
    wait: async () => ({ exitCode: 137, signal: "SIGKILL" }),
  };
}
