import { check, within } from "./assert.js";

/** Reads a stream as text, piece by piece. */
export class TextReader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #decoder = new TextDecoder();
  text = "";

  constructor(stream: ReadableStream<Uint8Array>) {
    this.#reader = stream.getReader();
  }

  /** Reads until the text matches; returns the match. */
  async until(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(this.text);
      if (match) return match;
      const more = await within(
        30_000,
        `output that matches ${pattern}, after ${JSON.stringify(this.text)}`,
        this.#next(),
      );
      check(more, `the output ended without ${pattern}: ${JSON.stringify(this.text)}`);
    }
  }

  /** Reads to the end. */
  async rest(): Promise<string> {
    while (await within(30_000, "the end of the output", this.#next()));
    return this.text;
  }

  async #next(): Promise<boolean> {
    const { done, value } = await this.#reader.read();
    if (!done) this.text += this.#decoder.decode(value, { stream: true });
    return !done;
  }
}

/** Writes text to the standard input of a process. */
export async function typeText(stdin: WritableStream<Uint8Array> | undefined, text: string): Promise<void> {
  check(stdin !== undefined, "the process has no stdin");
  const writer = stdin.getWriter();
  await writer.write(new TextEncoder().encode(text));
  writer.releaseLock();
}
