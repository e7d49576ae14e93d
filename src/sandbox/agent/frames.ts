import { SandboxError } from "../errors.js";

/** The agent's byte protocol, as `agent/frame.h` describes it. What comes from inside is hostile: every frame is checked. */
export const PROTOCOL_VERSION = 1;
const HEADER_BYTES = 13;
const MAX_BODY = 4 << 20;
/** Largest piece of a stream in one frame. */
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
} as const;

export interface Frame {
  type: number;
  call: number;
  body: Buffer;
}

/** The longest body that each kind of answer may have. */
const LONGEST: Readonly<Record<number, number>> = {
  [ANSWER.hello]: 1024,
  [ANSWER.started]: 0,
  [ANSWER.stdout]: DATA_BYTES,
  [ANSWER.stderr]: DATA_BYTES,
  [ANSWER.exit]: 6,
  [ANSWER.fail]: 1024,
  [ANSWER.result]: MAX_BODY,
  [ANSWER.stdinCredit]: 4,
  [ANSWER.accepted]: 0,
};

function tampered(what: string): SandboxError {
  return new SandboxError("tampered", `the agent sent ${what}; the sandbox is not trusted any more`);
}

/** Makes a frame of a body that is given in pieces. */
export function encodeFrame(sequence: number, type: number, call: number, body: readonly Uint8Array[]): Buffer {
  let length = 0;
  for (const piece of body) length += piece.length;
  const frame = Buffer.allocUnsafe(HEADER_BYTES + length);
  frame.writeUInt32LE(length, 0);
  frame.writeUInt32LE(sequence >>> 0, 4);
  frame[8] = type;
  frame.writeUInt32LE(call, 9);
  let at = HEADER_BYTES;
  for (const piece of body) {
    frame.set(piece, at);
    at += piece.length;
  }
  return frame;
}

/** Cuts a byte stream into frames; throws `tampered` on the first that is not as it must be. */
export class FrameParser {
  #rest: Buffer = Buffer.alloc(0);
  #pieces: Buffer[] = [];
  #length = 0;
  #sequence = 0;

  /** Takes what arrived and gives the frames that are whole now. Bodies of data are views into `chunk` where possible. */
  push(chunk: Buffer): Frame[] {
    this.#pieces.push(chunk);
    this.#length += chunk.length;
    const frames: Frame[] = [];
    for (;;) {
      if (this.#length < HEADER_BYTES) break;
      const length = this.#join(HEADER_BYTES).readUInt32LE(0);
      const type = this.#rest[8] as number;
      const longest = LONGEST[type];
      if (longest === undefined) throw tampered(`a frame of unknown type ${type}`);
      if (length > longest) throw tampered(`a frame of type ${type} with ${length} bytes`);
      if (this.#rest.readUInt32LE(4) !== this.#sequence) throw tampered("a frame out of sequence");
      if (this.#length < HEADER_BYTES + length) break;
      const whole = this.#join(HEADER_BYTES + length);
      frames.push({ type, call: whole.readUInt32LE(9), body: whole.subarray(HEADER_BYTES, HEADER_BYTES + length) });
      this.#rest = whole.subarray(HEADER_BYTES + length);
      this.#pieces = this.#rest.length > 0 ? [this.#rest] : [];
      this.#length = this.#rest.length;
      this.#sequence = (this.#sequence + 1) >>> 0;
    }
    return frames;
  }

  /** Makes the first `wanted` bytes contiguous; all pieces are joined at once so that a large frame is copied once. */
  #join(wanted: number): Buffer {
    const first = this.#pieces[0] as Buffer;
    this.#rest =
      first.length >= wanted && this.#pieces.length === 1 ? first : Buffer.concat(this.#pieces, this.#length);
    this.#pieces = [this.#rest];
    return this.#rest;
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
