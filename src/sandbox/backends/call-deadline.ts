import { SandboxError } from "../../../contracts/errors.js";

/** The errors that a call ends with when it has no answer in time, and when its caller gives up. */
export interface CallEndings {
  late(): SandboxError;
  aborted(cause: unknown): SandboxError;
}

/** One signal for the caller's abort and for the deadline of a call. */
export class CallDeadline {
  readonly #aborter = new AbortController();
  readonly #caller: AbortSignal | undefined;
  readonly #endings: CallEndings;
  #timer: NodeJS.Timeout | undefined;
  readonly #onAbort = (): void => this.#aborter.abort(this.#caller?.reason);

  constructor(patience: number, caller: AbortSignal | undefined, endings: CallEndings) {
    this.#caller = caller;
    this.#endings = endings;
    this.#timer = setTimeout(() => this.#aborter.abort(endings.late()), patience);
    if (caller?.aborted) this.#onAbort();
    else caller?.addEventListener("abort", this.#onAbort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#aborter.signal;
  }

  /** The answer has started: from now on only the caller's abort counts. */
  started(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  clear(): void {
    this.started();
    this.#caller?.removeEventListener("abort", this.#onAbort);
  }

  /** Why the call was aborted, if it was. */
  reason(): SandboxError | undefined {
    const { reason } = this.signal;
    if (!this.signal.aborted || reason instanceof SandboxError) return reason as SandboxError | undefined;
    return this.#endings.aborted(reason);
  }
}
