import type { Session } from "@vercel/sandbox";
import { isPassing, retryAfter } from "./failure.js";

/** The timeout is extended when no more than this is left, or half of it, in milliseconds. */
const MARGIN = 60_000;
/** This process ends an expired sandbox; the service does it this many milliseconds later, if the process is dead. */
export const SECOND_LINE = 10_000;
/** How long to wait after a transient failure, in milliseconds. */
const PAUSE = 1_000;

/** Extends the timeout of a machine while something runs on it. An idle one is left to the service. */
export class MachineLifetime {
  readonly #session: Session;
  readonly #timeout: number;
  readonly #warn: (message: string) => void;
  /** Beyond this the timeout is not extended. */
  readonly #end: number;
  #expires: number;
  #holders = 0;
  #timer: NodeJS.Timeout | undefined;
  #isAtItsEnd = false;

  constructor(session: Session, timeout: number, warn: (message: string) => void, expiresAt?: string) {
    this.#session = session;
    this.#timeout = timeout;
    this.#warn = warn;
    const now = performance.now();
    this.#expires = now + timeout;
    this.#end =
      expiresAt === undefined ? Number.POSITIVE_INFINITY : now + Date.parse(expiresAt) + SECOND_LINE - Date.now();
  }

  /** Counts the users of the machine: one more, or one less. */
  hold(busy: boolean): void {
    this.#holders += busy ? 1 : -1;
    clearTimeout(this.#timer);
    if (this.#holders > 0 && !this.#isAtItsEnd) this.#schedule();
  }

  #schedule(atLeast = 0): void {
    const margin = Math.min(MARGIN, this.#timeout / 2);
    const wait = Math.max(atLeast, this.#expires - margin - performance.now());
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#extend(), wait).unref();
  }

  async #extend(): Promise<void> {
    const more = Math.ceil(Math.min(this.#timeout, this.#end - this.#expires));
    if (more <= 0) return;
    try {
      await this.#session.extendTimeout(more);
      this.#expires += more;
      if (this.#holders > 0) this.#schedule();
    } catch (error) {
      if (isPassing(error) && performance.now() < this.#expires) {
        if (this.#holders > 0) this.#schedule(retryAfter(error) ?? PAUSE);
        return;
      }
      this.#isAtItsEnd = true;
      this.#warn(`the machine's timeout could not be extended: ${(error as Error).message}`);
    }
  }
}
