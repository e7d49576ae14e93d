import { SandboxError } from "../../../../../contracts/errors.js";

const HEADER_BYTES = 8;
/** The engine cuts its frames far below this; a longer one is not from an engine. */
const MAX_FRAME = 16 << 20;

/** A piece of what a container wrote. */
export interface OutputPiece {
  readonly stream: "stdout" | "stderr";
  readonly bytes: Buffer;
}

/** Takes apart a stream that the engine has put together of stdout and stderr. Pieces come as they arrive. */
export class Demultiplexer {
  #header: Buffer = Buffer.alloc(0);
  #stream: OutputPiece["stream"] = "stdout";
  #left = 0;

  /** Takes what arrived, gives what it says. A header may be cut anywhere. */
  push(chunk: Buffer): OutputPiece[] {
    const pieces: OutputPiece[] = [];
    for (let at = 0; at < chunk.length; ) {
      if (this.#left === 0) {
        const end = at + HEADER_BYTES - this.#header.length;
        this.#header = Buffer.concat([this.#header, chunk.subarray(at, end)]);
        at = end;
        if (this.#header.length === HEADER_BYTES) this.#begin();
      } else {
        const bytes = chunk.subarray(at, at + this.#left);
        at += bytes.length;
        this.#left -= bytes.length;
        pieces.push({ stream: this.#stream, bytes });
      }
    }
    return pieces;
  }

  /** Whether everything that was begun was also ended. */
  get isWhole(): boolean {
    return this.#left === 0 && this.#header.length === 0;
  }

  #begin(): void {
    const kind = this.#header[0] as number;
    this.#left = this.#header.readUInt32BE(4);
    if (kind > 2 || this.#left > MAX_FRAME) {
      throw new SandboxError("tampered", "The Docker engine sent a stream that cannot be taken apart");
    }
    this.#stream = kind === 2 ? "stderr" : "stdout";
    this.#header = Buffer.alloc(0);
  }
}

/** Reads a stream of the engine piece by piece; who does not ask slows the container down. */
export async function* readOutput(source: AsyncIterable<Buffer>): AsyncGenerator<OutputPiece, void> {
  const demultiplexer = new Demultiplexer();
  for await (const chunk of source) yield* demultiplexer.push(chunk);
  if (!demultiplexer.isWhole) throw new SandboxError("backend_lost", "The output of the container broke off");
}
