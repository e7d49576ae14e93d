import { tampered } from "./frames.js";
import type { RelayDecoder } from "./relay-decoder.js";

/** The version of the link that this parses; `LINK_VERSION` in `guest/channel/frame.h`. */
const VERSION = 2;
const GREETING_HEAD = 8;
const MAX_ENVIRONMENT = 256 << 10;
const PIECE_HEAD = 16;
const MAX_PIECE = 64 << 10;

/** Parses the bytes of a relay that is one connection in both directions; see `guest/channel/link.c`. */
export class RelayPieces implements RelayDecoder<Uint8Array> {
  position = 0;
  heard = 0;
  readonly hasEnded = false;
  environment: Readonly<Record<string, string>> | undefined;
  readonly #onLetters: (next: number) => void;
  #rest: Buffer = Buffer.alloc(0);
  #isGreeted = false;
  /** How many bytes of the current piece have yet to come. */
  #left = 0;

  /** `onLetters`: called with the number of the letter that the guest takes next. */
  constructor(onLetters: (next: number) => void) {
    this.#onLetters = onLetters;
  }

  restart(): void {
    this.#rest = Buffer.alloc(0);
    this.#isGreeted = false;
    this.#left = 0;
  }

  *push(chunk: Uint8Array): Generator<Uint8Array> {
    let bytes: Buffer = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    this.heard += 1;
    if (this.#rest.length > 0) bytes = Buffer.concat([this.#rest, bytes]);
    for (;;) {
      if (this.#left > 0 && bytes.length > 0) {
        const part = bytes.subarray(0, this.#left);
        this.#left -= part.length;
        this.position += part.length;
        bytes = bytes.subarray(part.length);
        yield part;
        continue;
      }
      const taken = this.#isGreeted ? this.#takeHead(bytes) : this.#takeGreeting(bytes);
      if (taken === 0) break;
      bytes = bytes.subarray(taken);
    }
    this.#rest = bytes;
  }

  /** Returns how many bytes the head of a piece has; 0 if it is not whole. */
  #takeHead(bytes: Buffer): number {
    if (bytes.length < PIECE_HEAD) return 0;
    const length = bytes.readUInt32LE(0);
    if (length > MAX_PIECE) throw tampered(`a piece of ${length} bytes`);
    const at = bytes.readBigUInt64LE(8);
    // Something was lost or came twice: a new relay starts where this one should have.
    if (at !== BigInt(this.position)) throw new Error(`expected position ${this.position}, got ${at}`);
    this.#left = length;
    this.#onLetters(bytes.readUInt32LE(4));
    return PIECE_HEAD;
  }

  #takeGreeting(bytes: Buffer): number {
    if (bytes.length < GREETING_HEAD) return 0;
    const length = bytes.readUInt32LE(0);
    if (length < 4 || length > MAX_ENVIRONMENT || bytes.readUInt32LE(4) !== VERSION) {
      throw tampered("a greeting of another kind");
    }
    if (bytes.length < 4 + length) return 0;
    this.environment = parseEnvironment(bytes.subarray(GREETING_HEAD, 4 + length));
    this.#isGreeted = true;
    return 4 + length;
  }
}

function parseEnvironment(bytes: Buffer): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const each of bytes.toString("utf8").split("\0")) {
    const at = each.indexOf("=");
    if (at > 0) environment[each.slice(0, at)] = each.slice(at + 1);
  }
  return environment;
}
