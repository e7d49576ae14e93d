import { endOfWholeCharacters, OutputCollector } from "../../util/output-collector.js";
import { createByteRedactor, type Redactor } from "../../util/redact.js";
import type { PrintedOutput } from "../nodes.js";
import type { NodeOutput, OutputStream } from "../types.js";
import type { EngineState } from "./engine-state.js";

/** How much of a node's output is kept in its result. All of it is passed on. */
export const MAX_NODE_OUTPUT: number = 50 * 1024;

interface Channel {
  readonly redactor: Redactor<Buffer>;
  /** The incomplete character at the end of the last piece. */
  partial: Buffer;
}

const NOTHING = Buffer.alloc(0);

/**
 * The one way from a command's bytes to what is seen of them: redacted across the borders of pieces, passed on, and head
 * and tail kept. Redaction comes before anything is cut, so no half of a secret is left. They stay bytes: a text of
 * every piece of a long log would cost more memory than the log's own pieces do.
 */
export class OutputPipe {
  readonly #state: EngineState;
  readonly #ids: Pick<NodeOutput, "nodeId" | "parentId" | "checkId">;
  readonly #collector = new OutputCollector(MAX_NODE_OUTPUT);
  readonly #channels = new Map<OutputStream, Channel>();

  constructor(state: EngineState, ids: Pick<NodeOutput, "nodeId" | "parentId" | "checkId">) {
    this.#state = state;
    this.#ids = ids;
  }

  /** Takes bytes as they come; resolves when they were taken. */
  async write(stream: OutputStream, chunk: Uint8Array): Promise<void> {
    const channel = this.#channel(stream);
    const safe = channel.redactor.write(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    const bytes = channel.partial.length === 0 ? safe : Buffer.concat([channel.partial, safe]);
    const end = endOfWholeCharacters(bytes);
    channel.partial = end === bytes.length ? NOTHING : Buffer.from(bytes.subarray(end));
    await this.#pass(stream, bytes.subarray(0, end));
  }

  /** Passes on what is still buffered. */
  async end(): Promise<void> {
    for (const [stream, { redactor, partial }] of this.#channels) {
      await this.#pass(stream, Buffer.concat([partial, redactor.end()]));
    }
    this.#channels.clear();
  }

  /** Head and tail of all that came. */
  get kept(): PrintedOutput {
    const { text, truncated } = this.#collector.result(false);
    return { output: text, outputTruncated: truncated };
  }

  #channel(stream: OutputStream): Channel {
    const known = this.#channels.get(stream);
    if (known !== undefined) return known;
    const made = { redactor: createByteRedactor(this.#state.hidden), partial: NOTHING };
    this.#channels.set(stream, made);
    return made;
  }

  async #pass(stream: OutputStream, bytes: Buffer): Promise<void> {
    if (bytes.length === 0) return;
    if (stream !== "transcript") this.#collector.push(bytes);
    await this.#state.emitOutput({ ...this.#ids, stream, bytes });
  }
}
