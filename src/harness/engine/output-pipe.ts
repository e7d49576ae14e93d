import { OutputCollector } from "../../util/output-collector.js";
import { createRedactor, type RedactOptions, type Redactor } from "../../util/redact.js";
import type { OutputStream } from "../event-types.js";

/** How much of a node's output is kept in its result. The whole of it goes on as events. */
export const MAX_NODE_OUTPUT: number = 50 * 1024;

/** Takes a piece of redacted text. */
export type OutputSink = (stream: OutputStream, text: string) => void | Promise<void>;

interface Channel {
  readonly decoder: InstanceType<typeof TextDecoder>;
  readonly redactor: Redactor;
}

/**
 * The one way from a command's bytes to what is seen of them: decoded, redacted across the borders of pieces, handed on,
 * and head and tail kept. Redaction comes before anything is cut, so no half of a secret is left.
 */
export class OutputPipe {
  readonly #sink: OutputSink;
  readonly #hidden: RedactOptions;
  readonly #collector = new OutputCollector(MAX_NODE_OUTPUT);
  readonly #channels = new Map<OutputStream, Channel>();

  constructor(sink: OutputSink, hidden: RedactOptions) {
    this.#sink = sink;
    this.#hidden = hidden;
  }

  /** Takes bytes as they come; resolves when they were taken. */
  async write(stream: OutputStream, chunk: Uint8Array): Promise<void> {
    const { decoder, redactor } = this.#channel(stream);
    const decoded = decoder.decode(chunk, { stream: true });
    const text = redactor.write(decoded);
    // The usual case, plain text without secrets, is kept without another copy.
    const isSame = text === decoded && text.length === chunk.length;
    await this.#pass(stream, text, isSame ? chunk : Buffer.from(text));
  }

  /** Lets out what was held back. */
  async end(): Promise<void> {
    for (const [stream, { decoder, redactor }] of this.#channels) {
      const text = redactor.write(decoder.decode()) + redactor.end();
      await this.#pass(stream, text, Buffer.from(text));
    }
    this.#channels.clear();
  }

  /** Head and tail of all that came. */
  get kept(): { text: string; truncated: boolean } {
    const { text, truncated } = this.#collector.result(false);
    return { text, truncated };
  }

  #channel(stream: OutputStream): Channel {
    const known = this.#channels.get(stream);
    if (known !== undefined) return known;
    const made = { decoder: new TextDecoder(), redactor: createRedactor(this.#hidden) };
    this.#channels.set(stream, made);
    return made;
  }

  async #pass(stream: OutputStream, text: string, bytes: Uint8Array): Promise<void> {
    if (text === "") return;
    if (stream !== "transcript") this.#collector.push(bytes);
    await this.#sink(stream, text);
  }
}
