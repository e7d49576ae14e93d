type Next = IteratorResult<Uint8Array, undefined>;

/** Smaller chunks are merged, so that a stream of single bytes is not a thousand objects. */
const SMALL = 4 << 10;
const GATHERED = 16 << 10;

/** Bytes on their way from a channel to one reader; informs the sender when the reader has taken some. */
export class ByteQueue implements AsyncIterable<Uint8Array> {
  readonly #chunks: Uint8Array[] = [];
  readonly #onTaken: (bytes: number) => void;
  readonly #waiting: { resolve(result: Next): void; reject(error: Error): void }[] = [];
  /** The buffer that starts with the last chunk, if chunks were merged into it. */
  #gathering: Uint8Array | undefined;
  #ended = false;
  #error: Error | undefined;

  constructor(onTaken: (bytes: number) => void) {
    this.#onTaken = onTaken;
  }

  push(chunk: Uint8Array): void {
    if (this.#ended || chunk.length === 0) return;
    const waiting = this.#waiting.shift();
    if (!waiting) {
      this.#keep(chunk);
      return;
    }
    this.#onTaken(chunk.length);
    waiting.resolve({ done: false, value: chunk });
  }

  end(error?: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    for (const waiting of this.#waiting.splice(0)) {
      if (error) waiting.reject(error);
      else waiting.resolve({ done: true, value: undefined });
    }
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array, undefined> {
    return {
      next: () => this.#next(),
      return: () => Promise.resolve({ done: true, value: undefined }),
    };
  }

  #next(): Promise<Next> {
    const chunk = this.#chunks.shift();
    if (chunk) {
      if (this.#chunks.length === 0) this.#gathering = undefined;
      this.#onTaken(chunk.length);
      return Promise.resolve({ done: false, value: chunk });
    }
    if (this.#error) return Promise.reject(this.#error);
    if (this.#ended) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
    });
  }

  /** A queued chunk must not keep alive a much larger buffer that it is a view into. */
  #keep(chunk: Uint8Array): void {
    if (chunk.length >= SMALL) {
      this.#gathering = undefined;
      this.#chunks.push(chunk.buffer.byteLength > 4 * chunk.length ? new Uint8Array(chunk) : chunk);
      return;
    }
    const last = this.#chunks.length - 1;
    const length = this.#chunks[last]?.length ?? 0;
    const room = this.#gathering;
    if (room && length + chunk.length <= room.length) {
      room.set(chunk, length);
      this.#chunks[last] = room.subarray(0, length + chunk.length);
      return;
    }
    this.#gathering = new Uint8Array(GATHERED);
    this.#gathering.set(chunk);
    this.#chunks.push(this.#gathering.subarray(0, chunk.length));
  }
}
