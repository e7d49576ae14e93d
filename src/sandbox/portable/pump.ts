import type { OutputCollector } from "../../util/output-collector.js";

/** How long a consumer that still works on late pieces is waited for once the command was killed. */
const LATE_DELIVERY = 250;

/** Takes pieces of output; a promise slows the command down until it settles. */
export type Consumer = (chunk: Uint8Array) => void | Promise<void>;

/**
 * Moves one output stream of a process to the collector and to the caller.
 *
 * Before `release` each delivery is awaited. After it the stream is read on, so that what the command wrote is kept,
 * and the consumer is served behind it in order.
 */
export class Pump {
  readonly done: Promise<void>;
  /** Whether the caller's consumer is what is being waited for. */
  delivering = false;
  ended = false;
  readonly #collector: OutputCollector;
  readonly #onConsumerError: (error: unknown) => void;
  #consumer: Consumer | undefined;
  #released: Promise<void> | undefined;
  #release: (() => void) | undefined;
  #late: Promise<void> | undefined;

  constructor(
    source: AsyncIterable<Uint8Array>,
    collector: OutputCollector,
    consumer: Consumer | undefined,
    onConsumerError: (error: unknown) => void,
  ) {
    this.#collector = collector;
    this.#consumer = consumer;
    this.#onConsumerError = onConsumerError;
    if (consumer !== undefined) {
      this.#released = new Promise((resolve) => {
        this.#release = resolve;
      });
    }
    this.done = this.#run(source);
  }

  async #run(source: AsyncIterable<Uint8Array>): Promise<void> {
    for await (const chunk of source) {
      this.#collector.push(chunk);
      if (this.#consumer === undefined) continue;
      if (this.#release === undefined) this.#deliverLate(chunk);
      else await this.#deliver(this.#consumer, chunk);
    }
    if (this.#late !== undefined) await settledWithin(this.#late, LATE_DELIVERY);
    this.ended = true;
  }

  async #deliver(consumer: Consumer, chunk: Uint8Array): Promise<void> {
    try {
      const pending = consumer(chunk);
      if (pending === undefined) return;
      this.delivering = true;
      const delivery = Promise.resolve(pending).catch((error: unknown) => this.#consumerFailed(error));
      await Promise.race([delivery, this.#released]);
      this.delivering = false;
      if (this.#release === undefined) this.#late = delivery;
    } catch (error) {
      this.#consumerFailed(error);
    }
  }

  #deliverLate(chunk: Uint8Array): void {
    this.#late = (this.#late ?? Promise.resolve())
      .then(() => this.#consumer?.(chunk))
      .catch((error: unknown) => this.#consumerFailed(error));
  }

  #consumerFailed(error: unknown): void {
    this.#consumer = undefined;
    this.#onConsumerError(error);
  }

  /** From now on the stream does not wait for the consumer any more. */
  release(): void {
    this.#release?.();
    this.#release = undefined;
  }
}

/** Waits for a promise, but not for longer than that. */
export async function settledWithin(promise: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([promise.catch(() => undefined), timeout]);
  clearTimeout(timer);
}
