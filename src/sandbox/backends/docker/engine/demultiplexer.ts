import { SandboxError } from "../../../../../contracts/errors.js";

const HEADER_BYTES = 8;
/** Frames of an engine are far smaller. */
const MAX_FRAME = 16 << 20;

/** A piece of what a container wrote. */
export interface OutputPiece {
  readonly stream: "stdout" | "stderr";
  readonly bytes: Buffer;
}

/** Splits an engine's stream into stdout and stderr, as it arrives. */
export class Demultiplexer {
  #header: Buffer = Buffer.alloc(0);
  #stream: OutputPiece["stream"] = "stdout";
  #left = 0;

  /** Takes a chunk and returns its pieces. A chunk may end anywhere, also inside a header. */
  push(chunk: Buffer): OutputPiece[] {
    const pieces: OutputPiece[] = [];
    for (let at = 0; at < chunk.length; ) {
      if (this.#left === 0) {
        const end = at + HEADER_BYTES - this.#header.length;
        this.#header = Buffer.concat([this.#header, chunk.subarray(at, end)]);
        at = end;
        if (this.#header.length === HEADER_BYTES) this.#readHeader();
      } else {
        const bytes = chunk.subarray(at, at + this.#left);
        at += bytes.length;
        this.#left -= bytes.length;
        pieces.push({ stream: this.#stream, bytes });
      }
    }
    return pieces;
  }

  /** Whether the stream ends between two frames. */
  get isWhole(): boolean {
    return this.#left === 0 && this.#header.length === 0;
  }

  #readHeader(): void {
    const kind = this.#header[0] as number;
    this.#left = this.#header.readUInt32BE(4);
    if (kind > 2 || this.#left > MAX_FRAME) {
      throw new SandboxError("tampered", "The Docker engine sent an invalid stream");
    }
    this.#stream = kind === 2 ? "stderr" : "stdout";
    this.#header = Buffer.alloc(0);
  }
}

/** Reads the output of a container piece by piece. A slow reader slows the container down. */
export async function* readOutput(source: AsyncIterable<Buffer>): AsyncGenerator<OutputPiece, void> {
  const demultiplexer = new Demultiplexer();
  for await (const chunk of source) yield* demultiplexer.push(chunk);
  if (!demultiplexer.isWhole) throw new SandboxError("backend_lost", "The output of the container broke off");
}
