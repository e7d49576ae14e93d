/** A stream that is drawn from its source without waiting for a reader; memory is its only bound. */
export class Tap implements AsyncIterable<Uint8Array> {
  readonly #chunks: Uint8Array[] = [];
  #isOver = false;
  #wake: (() => void) | undefined;

  constructor(source: AsyncIterable<Uint8Array>, take: (chunk: Uint8Array) => void = (chunk) => this.push(chunk)) {
    void this.#draw(source, take);
  }

  push(chunk: Uint8Array): void {
    this.#chunks.push(chunk);
    this.#wake?.();
  }

  async #draw(source: AsyncIterable<Uint8Array>, take: (chunk: Uint8Array) => void): Promise<void> {
    try {
      for await (const chunk of source) take(chunk);
    } catch {
      // A source that broke has ended.
    }
    this.#isOver = true;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      const next = this.#chunks.shift();
      if (next !== undefined) yield next;
      else if (this.#isOver) return;
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }
}
