/** The lifetime of one connection. It ends once, for a reason, and ends everything that waits on it. */
export class Lifetime {
  readonly #endings = new Set<(reason: Error) => void>();
  readonly #idle: NodeJS.Timeout;
  #reason: Error | undefined;

  /** Ends by itself when no byte has moved for `idle` milliseconds. */
  constructor(idle: number) {
    this.#idle = setTimeout(() => this.end(new Error("nothing moved for too long")), idle);
    this.#idle.unref();
  }

  /** Restarts the idle time. */
  touch(): void {
    if (this.#reason === undefined) this.#idle.refresh();
  }

  end(reason: Error = new Error("the connection is over")): void {
    if (this.#reason !== undefined) return;
    this.#reason = reason;
    clearTimeout(this.#idle);
    for (const ending of this.#endings) ending(reason);
    this.#endings.clear();
  }

  /** Calls back at the end, or now if it has ended. Returns a function that cancels this. */
  onEnd(callback: (reason: Error) => void): () => void {
    if (this.#reason !== undefined) {
      callback(this.#reason);
      return () => undefined;
    }
    this.#endings.add(callback);
    return () => this.#endings.delete(callback);
  }

  /** Waits for something until the connection ends. */
  during<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const forget = this.onEnd(reject);
      work.then(resolve, reject).finally(forget);
    });
  }

  /** Waits as `during`, for this many milliseconds at most. */
  async within<T>(work: Promise<T>, milliseconds: number, late: () => Error): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const expired = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => reject(late()), milliseconds);
      timer.unref();
    });
    try {
      return await this.during(Promise.race([work, expired]));
    } finally {
      clearTimeout(timer);
    }
  }
}
