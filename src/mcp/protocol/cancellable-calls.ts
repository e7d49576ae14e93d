/**
 * The calls over HTTP that another request can cancel. Before 2026 that is how clients cancel, and no session of ours ties the two requests: the
 * token and the number of the call do.
 */
export class CancellableCalls {
  readonly #running = new Map<string, Set<AbortController>>();

  /** Makes a call that can be cancelled while it runs. */
  async run<T>(owner: string, id: string | number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const key = keyOf(owner, id);
    const cancelling = new AbortController();
    const calls = this.#running.get(key) ?? new Set();
    this.#running.set(key, calls.add(cancelling));
    try {
      return await work(cancelling.signal);
    } finally {
      calls.delete(cancelling);
      if (calls.size === 0) this.#running.delete(key);
    }
  }

  /** Cancels the call of that number. If several clients with one token have such a call, none is cancelled: it could be another's. */
  cancel(owner: string, id: string | number): void {
    const [call, other] = this.#running.get(keyOf(owner, id)) ?? [];
    if (other === undefined) call?.abort();
  }
}

function keyOf(owner: string, id: string | number): string {
  return JSON.stringify([owner, id]);
}
