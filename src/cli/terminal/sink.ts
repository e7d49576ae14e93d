import { InertStream } from "../../util/inert-stream.js";
import { OutputCollector } from "../../util/output-collector.js";
import { MAX_OUTPUT_BYTES } from "../../util/sanitize.js";
import type { Output } from "./output.js";
import type { Screen } from "./screen.js";
import { hasColours } from "./style.js";

/** Where one output stream of a command goes. */
export interface Sink {
  write(chunk: Uint8Array): Promise<void>;
  end(): Promise<void>;
}

/** A sink that prints the stream: unchanged, or made harmless for a terminal, where colours may pass. */
export function createSink(
  screen: Screen,
  output: Output,
  { isRaw = false, colours = false }: { readonly isRaw?: boolean; readonly colours?: boolean } = {},
): Sink {
  if (isRaw || output.isTTY !== true) {
    return { write: (chunk) => screen.write(output, chunk), end: () => Promise.resolve() };
  }
  const inert = new InertStream({ colours: colours && hasColours(output, process.env) });
  return {
    write: (chunk) => screen.write(output, inert.push(chunk)),
    end: () => screen.write(output, inert.end()),
  };
}

/** A sink that keeps the head and the tail of the stream within the usual bound. */
export class CollectingSink implements Sink {
  readonly #collector = new OutputCollector(MAX_OUTPUT_BYTES);

  async write(chunk: Uint8Array): Promise<void> {
    this.#collector.push(chunk);
  }

  async end(): Promise<void> {}

  /** The kept output. */
  get result(): { text: string; truncated: boolean; bytes: number } {
    const { text, truncated, bytes } = this.#collector.result(false);
    return { text, truncated, bytes };
  }
}
