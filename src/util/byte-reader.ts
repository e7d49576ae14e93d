import { malformed } from "./tar/tar-decode.js";

/** Reads a stream in the amounts that a parser wants, with one chunk in memory at a time. */
export class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>;
  #chunk: Buffer = Buffer.alloc(0);

  constructor(stream: AsyncIterable<Uint8Array>) {
    this.#source = stream[Symbol.asyncIterator]();
  }

  /** At least one byte and at most `max`; undefined at the end. */
  async upTo(max: number): Promise<Buffer | undefined> {
    while (this.#chunk.length === 0) {
      const { done, value } = await this.#source.next();
      if (done) return undefined;
      this.#chunk = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    }
    const piece = this.#chunk.subarray(0, max);
    this.#chunk = this.#chunk.subarray(piece.length);
    return piece;
  }

  /** Exactly `count` bytes in pieces; a stream that ends earlier is an error. */
  async *pieces(count: number): AsyncGenerator<Buffer> {
    for (let left = count; left > 0; ) {
      const piece = await this.#some(left);
      left -= piece.length;
      yield piece;
    }
  }

  /** Exactly `count` bytes as one buffer. */
  async exactly(count: number): Promise<Buffer> {
    const found: Buffer[] = [];
    for await (const piece of this.pieces(count)) found.push(piece);
    return found.length === 1 && found[0] !== undefined ? found[0] : Buffer.concat(found, count);
  }

  /** Skips `count` bytes. */
  async skip(count: number): Promise<void> {
    for (let left = count; left > 0; ) left -= (await this.#some(left)).length;
  }

  /** Ends the source; nothing more will be read. */
  async close(): Promise<void> {
    await this.#source.return?.();
  }

  async #some(max: number): Promise<Buffer> {
    const piece = await this.upTo(max);
    if (piece === undefined) throw malformed("it ends in the middle");
    return piece;
  }
}
