import { colourLength, isColourReset } from "./inert-stream/colour-sequence.js";
import { escapeByte, toInert } from "./inert-text.js";

const CR = 0x0d;
const LF = 0x0a;
const ESC = 0x1b;

/** Ends all colours. */
const RESET = "\x1b[0m";

/**
 * Makes a stream of bytes harmless for a terminal. The result does not depend on where the chunks end: an incomplete
 * character, or a carriage return that a line feed may follow, waits for the next chunk. With `colours`, sequences that do
 * nothing but set colours and weight stay as they are; they end with the stream.
 */
export class InertStream {
  readonly #withColours: boolean;
  #held: Uint8Array = new Uint8Array(0);
  #isColoured = false;

  constructor({ colours = false }: { readonly colours?: boolean } = {}) {
    this.#withColours = colours;
  }

  /** Takes a chunk and returns the text that is complete by now. */
  push(chunk: Uint8Array): string {
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const keep = this.#withColours ? unfinishedColour(bytes) || unfinished(bytes) : unfinished(bytes);
    this.#held = bytes.slice(bytes.length - keep);
    return this.#render(bytes.subarray(0, bytes.length - keep));
  }

  /** Returns the rest. */
  end(): string {
    const rest = this.#held;
    this.#held = new Uint8Array(0);
    const text = this.#render(rest);
    const end = this.#isColoured ? RESET : "";
    this.#isColoured = false;
    return text + end;
  }

  #render(bytes: Uint8Array): string {
    let out = "";
    let from = 0;
    for (let at = 0; at < bytes.length; ) {
      const colour = this.#withColours ? (colourLength(bytes, at) ?? 0) : 0;
      const length = colour > 0 ? 0 : (characterLength(bytes, at) ?? 0);
      const isLineEnd = bytes[at] === CR && bytes[at + 1] === LF;
      if (length > 0 && !isLineEnd) {
        at += length;
        continue;
      }
      out += toInert(decode(bytes.subarray(from, at)));
      if (colour > 0) {
        const sequence = bytes.subarray(at, at + colour);
        this.#isColoured = !isColourReset(sequence);
        out += decode(sequence);
      } else out += isLineEnd ? "\r\n" : escapeByte(bytes[at] ?? 0);
      at += colour > 0 ? colour : isLineEnd ? 2 : 1;
      from = at;
    }
    return out + toInert(decode(bytes.subarray(from)));
  }
}

/** How many bytes at the end may be the start of a colour. */
function unfinishedColour(bytes: Uint8Array): number {
  const at = bytes.lastIndexOf(ESC);
  return at !== -1 && colourLength(bytes, at) === undefined ? bytes.length - at : 0;
}

function decode(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
}

/** How many bytes at the end may be the start of something longer. */
function unfinished(bytes: Uint8Array): number {
  const last = bytes.length - 1;
  if (bytes[last] === CR) return 1;
  for (let at = last; at >= 0 && at > last - 3; at--) {
    if (characterLength(bytes, at) === undefined) return bytes.length - at;
    if (((bytes[at] ?? 0) & 0xc0) !== 0x80) return 0;
  }
  return 0;
}

/** Length of the UTF-8 character that starts here; 0 if none does, undefined if it may continue after the end. */
function characterLength(bytes: Uint8Array, at: number): number | undefined {
  const lead = bytes[at] ?? 0;
  if (lead < 0x80) return 1;
  const length = lead < 0xc2 || lead > 0xf4 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  for (let index = 1; index < length; index++) {
    const byte = bytes[at + index];
    if (byte === undefined) return undefined;
    const [low, high] = index === 1 ? secondByte(lead) : [0x80, 0xbf];
    if (byte < low || byte > high) return 0;
  }
  return length;
}

/** No overlong forms, no surrogates, nothing beyond the last code point. */
function secondByte(lead: number): readonly [number, number] {
  if (lead === 0xe0) return [0xa0, 0xbf];
  if (lead === 0xed) return [0x80, 0x9f];
  if (lead === 0xf0) return [0x90, 0xbf];
  return lead === 0xf4 ? [0x80, 0x8f] : [0x80, 0xbf];
}
