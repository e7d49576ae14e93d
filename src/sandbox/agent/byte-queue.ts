/** Bytes on their way from a channel to one reader; tells the sender when the reader has taken some. */
export class ByteQueue implements AsyncIterable<Uint8Array> {
  readonly #chunks: Uint8Array[] = [];
  readonly #onTaken: (bytes: number) => void;
  #waiting: { resolve(result: IteratorResult<Uint8Array, undefined>): void; reject(error: Error): void } | undefined;
  #ended = false;
  #error: Error | undefined;

  constructor(onTaken: (bytes: number) => void) {
    this.#onTaken = onTaken;
  }

  push(chunk: Uint8Array): void {
    const waiting = this.#waiting;
    if (!waiting) {
      this.#chunks.push(chunk);
      return;
    }
    this.#waiting = undefined;
    this.#onTaken(chunk.length);
    waiting.resolve({ done: false, value: chunk });
  }

  end(error?: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (!waiting) return;
    if (error) waiting.reject(error);
    else waiting.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array, undefined> {
    return {
      next: () => this.#next(),
      return: () => Promise.resolve({ done: true, value: undefined }),
    };
  }

  #next(): Promise<IteratorResult<Uint8Array, undefined>> {
    const chunk = this.#chunks.shift();
    if (chunk) {
      this.#onTaken(chunk.length);
      return Promise.resolve({ done: false, value: chunk });
    }
    if (this.#error) return Promise.reject(this.#error);
    if (this.#ended) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
  }
}
