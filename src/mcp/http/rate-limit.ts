/** Lets so many requests of each client pass in a second, and twice as many at once. */
export class RateLimit {
  readonly #perSecond: number;
  readonly #left = new Map<string, { tokens: number; at: number }>();

  constructor(perSecond: number) {
    this.#perSecond = perSecond;
  }

  /** Whether one more request of this client may pass. */
  take(client: string, now: number = performance.now()): boolean {
    const most = 2 * this.#perSecond;
    const known = this.#left.get(client) ?? { tokens: most, at: now };
    const tokens = Math.min(most, known.tokens + ((now - known.at) / 1_000) * this.#perSecond);
    const mayPass = tokens >= 1;
    this.#left.set(client, { tokens: mayPass ? tokens - 1 : tokens, at: now });
    return mayPass;
  }
}
