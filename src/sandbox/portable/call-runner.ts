import { SandboxError, toSandboxError } from "../../../contracts/errors.js";
import { redactError, type Secrets } from "./events.js";
import type { OpenSandboxState } from "./open-sandbox-state.js";
import { withPathHint } from "./sandbox-path.js";

/** Runs the calls of one sandbox: only while it is open, within their deadline, with typed errors that show no secret. */
export class CallRunner {
  readonly #state: OpenSandboxState;
  readonly #hidden: Secrets;

  constructor(state: OpenSandboxState, hidden: Secrets) {
    this.#state = state;
    this.#hidden = hidden;
  }

  /** Runs `work`. Its signal is aborted when the caller has given up: at the deadline, or when `given` is aborted. */
  async run<T>(operation: string, work: (signal: AbortSignal) => Promise<T>, given?: AbortSignal): Promise<T> {
    this.#state.calls += 1;
    try {
      this.assertOpen();
      return await within(this.#state.operationTimeout, operation, work, given);
    } catch (error) {
      throw this.failure(error, operation);
    } finally {
      this.#state.calls -= 1;
      this.#state.onUsed?.();
    }
  }

  assertOpen(): void {
    if (!this.#state.closed) return;
    const { message = `The sandbox ${this.#state.driver.id} was torn down`, hint } = this.#state.ending ?? {};
    throw new SandboxError("closed", message, { hint });
  }

  failure(error: unknown, operation: string): SandboxError {
    const known = error instanceof SandboxError ? withPathHint(this.#state, error) : error;
    return redactError(toSandboxError(known, { backend: this.#state.driver.backend, operation }), this.#hidden);
  }
}

/** Enforces the deadline of an operation. The signal is aborted when the caller has given up. */
export async function within<T>(
  ms: number,
  operation: string,
  work: (signal: AbortSignal) => Promise<T>,
  given?: AbortSignal,
): Promise<T> {
  if (given?.aborted === true) throw abortedError(operation, given);
  const controller = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let onAbort: (() => void) | undefined;
  const ended = new Promise<never>((_, reject) => {
    const giveUp = (error: SandboxError): void => {
      controller.abort(error);
      reject(error);
    };
    timer = setTimeout(() => giveUp(lateError(operation, ms)), ms);
    if (given !== undefined) onAbort = () => giveUp(abortedError(operation, given));
  });
  if (onAbort !== undefined) given?.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([work(controller.signal), ended]);
  } finally {
    clearTimeout(timer);
    if (onAbort !== undefined) given?.removeEventListener("abort", onAbort);
  }
}

function lateError(operation: string, ms: number): SandboxError {
  return new SandboxError("unavailable", `${operation} did not finish within ${ms} ms`);
}

function abortedError(operation: string, signal: AbortSignal): SandboxError {
  return new SandboxError("aborted", `${operation} was aborted`, { cause: signal.reason });
}
