/** The longest time that a timer of Node can wait, in milliseconds. */
const LONGEST = 2_147_483_647;

/** Why a sandbox was closed without a call to `teardown`. */
export interface LifetimeEnd {
  readonly message: string;
  readonly hint: string;
  /** Whether a kept sandbox is removed, too. */
  readonly isExpired: boolean;
}

/** What bounds the time of an open sandbox. */
export interface LifetimeOptions {
  readonly id: string;
  /** ISO 8601. Absent: never. */
  readonly expiresAt: string | undefined;
  /** Milliseconds. Absent: it may be idle for ever. */
  readonly idleTimeout: number | undefined;
  /** Whether a call is under way or a process runs. */
  isBusy(): boolean;
  end(ending: LifetimeEnd): void;
}

/** Ends an open sandbox when its ttl is over, or when nobody has used it for long. Its timers never keep the process alive. */
export class SandboxLifetime {
  readonly #opts: LifetimeOptions;
  #usedAt = performance.now();
  #ttl: NodeJS.Timeout | undefined;
  #idle: NodeJS.Timeout | undefined;

  constructor(opts: LifetimeOptions) {
    this.#opts = opts;
    const { expiresAt, idleTimeout } = opts;
    // Once only: from here on the clock may be set back, and time goes on.
    if (expiresAt !== undefined) this.#awaitEnd(performance.now() + Date.parse(expiresAt) - Date.now());
    if (idleTimeout !== undefined) this.#awaitIdle(idleTimeout, idleTimeout);
  }

  /** Notes that a call or a process has just ended. */
  touch(): void {
    this.#usedAt = performance.now();
  }

  close(): void {
    clearTimeout(this.#ttl);
    clearTimeout(this.#idle);
  }

  #awaitEnd(at: number): void {
    const left = at - performance.now();
    const check = (): void => (at > performance.now() ? this.#awaitEnd(at) : this.#expire());
    this.#ttl = setTimeout(check, Math.min(Math.max(left, 0), LONGEST)).unref();
  }

  /** Looks again when the sandbox could have been idle for long enough at the earliest, so that no call has to set a timer. */
  #awaitIdle(idleTimeout: number, left: number): void {
    const check = (): void => {
      if (this.#opts.isBusy()) this.touch();
      const rest = this.#usedAt + idleTimeout - performance.now();
      if (rest > 0) this.#awaitIdle(idleTimeout, rest);
      else this.#closeIdle(idleTimeout);
    };
    this.#idle = setTimeout(check, Math.min(Math.ceil(left), LONGEST)).unref();
  }

  #expire(): void {
    const { id, expiresAt, end } = this.#opts;
    const message = `The sandbox ${id} was removed when its ttl ended, at ${expiresAt}`;
    end({ message, hint: "open another one with a longer ttl", isExpired: true });
  }

  #closeIdle(idleTimeout: number): void {
    const message = `The sandbox ${this.#opts.id} was closed after its idleTimeout: it was not used for ${idleTimeout} ms`;
    this.#opts.end({ message, hint: "reopen it by its id if it was kept; raise idleTimeout", isExpired: false });
  }
}
