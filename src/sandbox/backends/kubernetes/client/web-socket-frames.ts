import { randomFillSync } from "node:crypto";
import { KubeError } from "./kube-error.js";

/** The kinds of frames of RFC 6455. */
export const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

const MAX_CONTROL = 125;

/** A whole message or control frame. */
export interface Message {
  readonly opcode: number;
  readonly payload: Buffer;
}

/** Encodes one unfragmented frame of a client: masked, in a single buffer. */
export function encodeClientFrame(opcode: number, ...pieces: readonly Uint8Array[]): Buffer {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const extended = length < 126 ? 0 : length < 65_536 ? 2 : 8;
  const start = 2 + extended + 4;
  const frame = Buffer.allocUnsafe(start + length);
  frame[0] = 0x80 | opcode;
  frame[1] = 0x80 | (extended === 0 ? length : extended === 2 ? 126 : 127);
  if (extended === 2) frame.writeUInt16BE(length, 2);
  if (extended === 8) frame.writeBigUInt64BE(BigInt(length), 2);
  const mask = randomFillSync(frame, 2 + extended, 4).subarray(2 + extended, start);
  let at = start;
  for (const piece of pieces) {
    frame.set(piece, at);
    at += piece.length;
  }
  maskInPlace(frame.subarray(start), mask);
  return frame;
}

/** Four bytes at a time where the memory is aligned: byte by byte, large frames cost more than their encryption. */
function maskInPlace(bytes: Buffer, mask: Buffer): void {
  const maskAt = (at: number): number => mask[at % 4] as number;
  const xor = (from: number, to: number): void => {
    for (let at = from; at < to; at++) bytes[at] = (bytes[at] as number) ^ maskAt(at);
  };
  const lead = (4 - (bytes.byteOffset % 4)) % 4;
  // No word of it may be aligned.
  if (bytes.length < lead + 4) {
    xor(0, bytes.length);
    return;
  }
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + lead, (bytes.length - lead) >> 2);
  const [key = 0] = new Int32Array(Uint8Array.from([0, 1, 2, 3], (at) => maskAt(lead + at)).buffer);
  xor(0, lead);
  for (let at = 0; at < words.length; at++) words[at] = (words[at] as number) ^ key;
  xor(lead + words.length * 4, bytes.length);
}

interface Header {
  readonly isLast: boolean;
  readonly opcode: number;
  /** Of the header itself. */
  readonly size: number;
  readonly length: number;
}

/** Reads a server's frames, and joins the fragments of a message. Whatever an honest server would not send is `tampered`. */
export class ServerFrameReader {
  readonly #largest: number;
  #chunks: Buffer[] = [];
  #available = 0;
  /** How many bytes must be there before anything can be done. */
  #needed = 2;
  #fragments: Buffer[] | undefined;
  #gathered = 0;

  constructor(largestMessage: number) {
    this.#largest = largestMessage;
  }

  *push(chunk: Buffer): Generator<Message> {
    this.#chunks.push(chunk);
    this.#available += chunk.length;
    while (this.#available >= this.#needed) {
      const bytes = this.#joined();
      const header = parseHeader(bytes);
      if (header === undefined) {
        this.#needed = bytes.length + 1;
        return;
      }
      const end = header.size + header.length;
      this.#check(header);
      if (bytes.length < end) {
        this.#needed = end;
        return;
      }
      this.#needed = 2;
      this.#chunks = end === bytes.length ? [] : [bytes.subarray(end)];
      this.#available = bytes.length - end;
      const message = this.#assemble(header, bytes.subarray(header.size, end));
      if (message !== undefined) yield message;
    }
  }

  #joined(): Buffer {
    const [first] = this.#chunks;
    if (this.#chunks.length === 1 && first !== undefined) return first;
    const joined = Buffer.concat(this.#chunks, this.#available);
    this.#chunks = [joined];
    return joined;
  }

  #check({ opcode, isLast, length }: Header): void {
    if (opcode >= OPCODE.close) {
      if (opcode > OPCODE.pong || !isLast || length > MAX_CONTROL) throw tampered("a control frame that is not valid");
    } else if (opcode === OPCODE.continuation) {
      if (this.#fragments === undefined) throw tampered("the end of a message without its start");
    } else if (opcode !== OPCODE.binary) throw tampered("a message that is not binary");
    else if (this.#fragments !== undefined) throw tampered("a message within another");
    if (length + this.#gathered > this.#largest) throw tampered(`a message of more than ${this.#largest} bytes`);
  }

  #assemble({ opcode, isLast }: Header, payload: Buffer): Message | undefined {
    if (opcode >= OPCODE.close) return { opcode, payload };
    if (isLast && this.#fragments === undefined) return { opcode, payload };
    this.#fragments ??= [];
    this.#fragments.push(payload);
    this.#gathered += payload.length;
    if (!isLast) return undefined;
    const whole = Buffer.concat(this.#fragments, this.#gathered);
    this.#fragments = undefined;
    this.#gathered = 0;
    return { opcode: OPCODE.binary, payload: whole };
  }
}

/** Undefined when more bytes are needed. */
function parseHeader(bytes: Buffer): Header | undefined {
  const [first = 0, second = 0] = bytes;
  if ((first & 0x70) !== 0) throw tampered("a frame with an extension that was not agreed on");
  if ((second & 0x80) !== 0) throw tampered("a masked frame");
  const short = second & 0x7f;
  const size = short < 126 ? 2 : short === 126 ? 4 : 10;
  if (bytes.length < size) return undefined;
  const length = short < 126 ? short : short === 126 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
  return { isLast: (first & 0x80) !== 0, opcode: first & 0x0f, size, length };
}

function tampered(what: string): KubeError {
  return new KubeError("tampered", `The API server sent ${what}`);
}
