import { SandboxError } from "../../../contracts/errors.js";

/** The guest's byte protocol, as `guest/channel/frame.h` describes it. The guest is untrusted: every frame is checked. */
export const PROTOCOL_VERSION = 2;
const HEADER_BYTES = 13;
const EMPTY = Buffer.alloc(0);
/** Largest body of a frame. */
export const MAX_BODY: number = 4 << 20;
/** Largest chunk of a stream in one frame. */
export const DATA_BYTES: number = 64 << 10;

export const REQUEST = {
  start: 0x01,
  stdin: 0x02,
  stdinEnd: 0x03,
  signal: 0x04,
  credit: 0x05,
  resize: 0x06,
  read: 0x10,
  write: 0x11,
  writeStream: 0x12,
  stat: 0x13,
  list: 0x14,
  remove: 0x15,
  rename: 0x16,
  makeDirectory: 0x17,
  tarOut: 0x18,
  tarIn: 0x19,
  freeze: 0x1a,
  thaw: 0x1b,
  listen: 0x1c,
  // Edition 2.
  listEntries: 0x20,
  statTarget: 0x21,
  removeDirectory: 0x22,
  copy: 0x23,
  append: 0x24,
  appendStream: 0x25,
  readRange: 0x26,
  connect: 0x30,
  awaitPort: 0x31,
  // Edition 4.
  listenAt: 0x32,
  stopListening: 0x33,
  resolve: 0x34,
  reply: 0x35,
} as const;

export const ANSWER = {
  hello: 0x80,
  started: 0x81,
  stdout: 0x82,
  stderr: 0x83,
  exit: 0x84,
  fail: 0x85,
  result: 0x86,
  stdinCredit: 0x87,
  accepted: 0x88,
  ended: 0x89,
  leftOut: 0x8a,
  query: 0x8b,
} as const;

export interface Frame {
  type: number;
  call: number;
  body: Buffer;
}

/** The shortest and the longest body of each kind of answer. */
const LENGTHS: Readonly<Record<number, readonly [number, number]>> = {
  [ANSWER.hello]: [6, 1024],
  [ANSWER.started]: [0, 0],
  [ANSWER.stdout]: [1, DATA_BYTES],
  [ANSWER.stderr]: [1, DATA_BYTES],
  [ANSWER.exit]: [6, 6],
  [ANSWER.fail]: [4, 1024],
  [ANSWER.result]: [0, MAX_BODY],
  [ANSWER.stdinCredit]: [4, 4],
  [ANSWER.accepted]: [0, 6],
  [ANSWER.ended]: [0, 0],
  [ANSWER.leftOut]: [16, 16],
  [ANSWER.query]: [5, 4 + 512],
};

/** The error for a guest that breaks the protocol. */
export function tampered(what: string): SandboxError {
  return new SandboxError("tampered", `the guest sent ${what}; the sandbox is no longer trusted`);
}

/** Builds what comes before a body of this length. */
export function encodeHeader(sequence: number, type: number, call: number, length: number): Buffer {
  return writeHeader(Buffer.allocUnsafe(HEADER_BYTES), sequence, type, call, length);
}

function writeHeader(frame: Buffer, sequence: number, type: number, call: number, length: number): Buffer {
  frame.writeUInt32LE(length, 0);
  frame.writeUInt32LE(sequence >>> 0, 4);
  frame[8] = type;
  frame.writeUInt32LE(call, 9);
  return frame;
}

/** Builds a frame from the pieces of its body. */
export function encodeFrame(sequence: number, type: number, call: number, body: readonly Uint8Array[]): Buffer {
  let length = 0;
  for (const piece of body) length += piece.length;
  const frame = writeHeader(Buffer.allocUnsafe(HEADER_BYTES + length), sequence, type, call, length);
  let at = HEADER_BYTES;
  for (const piece of body) {
    frame.set(piece, at);
    at += piece.length;
  }
  return frame;
}

/** Splits a byte stream into frames; throws `tampered` at the first invalid one. */
export class FrameParser {
  #pieces: Buffer[] = [];
  #length = 0;
  #wanted = HEADER_BYTES;
  #sequence = 0;
  /** A stream frame whose last bytes have yet to come. */
  #flowing: { type: number; call: number; left: number } | undefined;

  /**
   * Adds what arrived and returns the frames that are complete. Bodies are views into what arrived where possible. Output is passed on as it
   * arrives, one frame in several parts, so that it is not copied.
   */
  push(chunk: Buffer): Frame[] {
    const frames: Frame[] = [];
    this.#add(this.#flow(chunk, frames));
    // Pieces are joined only when a header or a whole frame is there, so that a large frame is copied once.
    while (this.#length >= this.#wanted) {
      const bytes = this.#pieces.length === 1 ? (this.#pieces[0] as Buffer) : Buffer.concat(this.#pieces, this.#length);
      const end = HEADER_BYTES + this.#check(bytes);
      const type = bytes[8] as number;
      const call = bytes.readUInt32LE(9);
      this.#pieces = [];
      this.#length = 0;
      this.#wanted = HEADER_BYTES;
      if (type === ANSWER.stdout || type === ANSWER.stderr) {
        this.#flowing = { type, call, left: end - HEADER_BYTES };
        this.#add(this.#flow(bytes.subarray(HEADER_BYTES), frames));
      } else if (bytes.length >= end) {
        frames.push({ type, call, body: bytes.subarray(HEADER_BYTES, end) });
        this.#sequence = (this.#sequence + 1) >>> 0;
        this.#add(bytes.subarray(end));
      } else {
        this.#wanted = end;
        this.#add(bytes);
      }
    }
    return frames;
  }

  #add(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.#pieces.push(bytes);
    this.#length += bytes.length;
  }

  /** Passes on what belongs to the current frame, and returns the rest. */
  #flow(bytes: Buffer, frames: Frame[]): Buffer {
    const flowing = this.#flowing;
    if (flowing === undefined || bytes.length === 0) return bytes;
    const { type, call, left } = flowing;
    const body = bytes.length > left ? bytes.subarray(0, left) : bytes;
    frames.push({ type, call, body });
    flowing.left -= body.length;
    if (flowing.left > 0) return EMPTY;
    this.#flowing = undefined;
    this.#sequence = (this.#sequence + 1) >>> 0;
    return bytes.subarray(body.length);
  }

  /** Returns the length of the body, if this header may come now. */
  #check(header: Buffer): number {
    const length = header.readUInt32LE(0);
    const type = header[8] as number;
    const [shortest, longest] = LENGTHS[type] ?? [];
    if (shortest === undefined || longest === undefined) throw tampered(`a frame of unknown type ${type}`);
    if (length < shortest || length > longest) throw tampered(`a frame of type ${type} with ${length} bytes`);
    if (header.readUInt32LE(4) !== this.#sequence) throw tampered("a frame out of sequence");
    return length;
  }
}

/** Builds the body of a request. */
export class BodyWriter {
  readonly pieces: Uint8Array[] = [];

  u8(value: number): this {
    this.pieces.push(Uint8Array.of(value));
    return this;
  }

  u16(value: number): this {
    const bytes = Buffer.allocUnsafe(2);
    bytes.writeUInt16LE(value);
    this.pieces.push(bytes);
    return this;
  }

  u32(value: number): this {
    const bytes = Buffer.allocUnsafe(4);
    bytes.writeUInt32LE(value);
    this.pieces.push(bytes);
    return this;
  }

  u64(value: number): this {
    const bytes = Buffer.allocUnsafe(8);
    bytes.writeBigUInt64LE(BigInt(value));
    this.pieces.push(bytes);
    return this;
  }

  string(value: string): this {
    const length = Buffer.byteLength(value);
    const bytes = Buffer.allocUnsafe(length + 5);
    bytes.writeUInt32LE(length);
    bytes.write(value, 4);
    bytes[length + 4] = 0;
    this.pieces.push(bytes);
    return this;
  }

  strings(values: readonly string[]): this {
    this.u32(values.length);
    for (const value of values) this.string(value);
    return this;
  }

  bytes(value: Uint8Array): this {
    this.pieces.push(value);
    return this;
  }
}
