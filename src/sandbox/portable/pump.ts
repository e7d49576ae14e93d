import type { OutputCollector } from "../../util/output-collector.js";

/** How long to wait for a consumer of late chunks once the command was killed, in milliseconds. */
const LATE_DELIVERY = 250;

/** Gets chunks of output; a promise slows the command down until it settles. */
export type Consumer = (chunk: Uint8Array) => void | Promise<void>;

/**
 * Moves one output stream of a process to the collector and to the caller.
 *
 * Each delivery is awaited until `detach`. After that the stream is read on, so that no output is lost, and the consumer gets the chunks later, in
 * order.
 */
export class Pump {
  readonly done: Promise<void>;
  /** Whether the pump is waiting for the caller's consumer. */
  delivering = false;
  ended = false;
  readonly #collector: OutputCollector;
  readonly #onConsumerError: (error: unknown) => void;
  #consumer: Consumer | undefined;
  #detached: Promise<void> | undefined;
  #detach: (() => void) | undefined;
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
      this.#detached = new Promise((resolve) => {
        this.#detach = resolve;
      });
    }
    this.done = this.#run(source);
  }

  async #run(source: AsyncIterable<Uint8Array>): Promise<void> {
    for await (const chunk of source) {
      this.#collector.push(chunk);
      if (this.#consumer === undefined) continue;
      if (this.#detach === undefined) this.#deliverLate(chunk);
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
      await Promise.race([delivery, this.#detached]);
      this.delivering = false;
      if (this.#detach === undefined) this.#late = delivery;
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

  /** From now on, don't wait for the consumer. */
  detach(): void {
    this.#detach?.();
    this.#detach = undefined;
  }
}

/** Waits for a promise, for at most so many milliseconds. */
export async function settledWithin(promise: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([promise.catch(() => undefined), timeout]);
  clearTimeout(timer);
}
