import { truncationMarker } from "./sanitize.js";

/** The kept part of a stream. */
export interface CollectedOutput {
  /** The kept bytes as UTF-8, with a marker for the bytes left out. */
  text: string;
  /** The kept bytes, head and tail joined, without the marker. */
  raw: Uint8Array;
  /** The number of bytes written in all. */
  bytes: number;
  truncated: boolean;
}

const FIRST_ALLOCATION = 16 * 1024;

/**
 * Keeps the head and the tail of a byte stream within a bound, and counts all of it. The tail is a ring buffer after the
 * head, so the cap bounds the memory whatever the chunks look like.
 */
export class OutputCollector {
  readonly #cap: number;
  readonly #headCap: number;
  #store: Buffer | undefined;
  /** The only chunk so far, not copied: the usual case. */
  #single: Uint8Array | undefined;
  #bytes = 0;

  constructor(cap: number) {
    this.#cap = cap;
    this.#headCap = Math.ceil(cap / 2);
  }

  push(chunk: Uint8Array): void {
    if (chunk.length === 0) return;
    if (this.#bytes === 0 && chunk.length <= this.#cap) {
      this.#single = chunk;
      this.#bytes = chunk.length;
      return;
    }
    if (this.#single !== undefined) {
      const first = this.#single;
      this.#single = undefined;
      this.#bytes = 0;
      this.#copy(first);
    }
    this.#copy(chunk);
  }

  #copy(chunk: Uint8Array): void {
    const end = this.#bytes + chunk.length;
    const store = this.#room(Math.min(end, this.#cap));
    let from = 0;
    if (this.#bytes < this.#headCap) {
      from = Math.min(chunk.length, this.#headCap - this.#bytes);
      store.set(chunk.subarray(0, from), this.#bytes);
    }
    const ring = this.#cap - this.#headCap;
    if (ring > 0) {
      from = Math.max(from, chunk.length - ring);
      while (from < chunk.length) {
        const at = (this.#bytes + from - this.#headCap) % ring;
        const count = Math.min(chunk.length - from, ring - at);
        store.set(chunk.subarray(from, from + count), this.#headCap + at);
        from += count;
      }
    }
    this.#bytes = end;
  }

  #room(needed: number): Buffer {
    const store = this.#store ?? Buffer.allocUnsafe(Math.min(this.#cap, Math.max(FIRST_ALLOCATION, needed)));
    if (store.length >= needed) {
      this.#store = store;
      return store;
    }
    const larger = Buffer.allocUnsafe(Math.min(this.#cap, Math.max(store.length * 2, needed)));
    store.copy(larger);
    this.#store = larger;
    return larger;
  }

  /** The kept bytes, in the order of the store. */
  #kept(): Buffer {
    const kept = this.#single ?? this.#store?.subarray(0, Math.min(this.#bytes, this.#cap)) ?? new Uint8Array(0);
    return Buffer.from(kept.buffer, kept.byteOffset, kept.byteLength);
  }

  /**
   * The result so far; more may be pushed afterwards. `leftOut` counts bytes that were written but never pushed, between the
   * head and the tail.
   */
  result(withRaw: boolean, leftOut = 0): CollectedOutput {
    const bytes = this.#bytes + leftOut;
    const kept = this.#kept();
    if (leftOut === 0 && bytes <= this.#cap) {
      return { text: kept.toString("utf8"), raw: withRaw ? copyOf(kept) : kept, bytes, truncated: false };
    }
    const head = kept.subarray(0, this.#headCap);
    const ring = kept.subarray(this.#headCap);
    const isFull = this.#bytes > this.#cap && ring.length > 0;
    const oldest = isFull ? (this.#bytes - this.#headCap) % ring.length : 0;
    const tail = Buffer.concat([ring.subarray(oldest), ring.subarray(0, oldest)]);
    const headText = head.subarray(0, endOfWholeCharacters(head));
    const tailText = tail.subarray(startOfWholeCharacters(tail));
    const left = bytes - headText.length - tailText.length;
    return {
      text: `${headText.toString("utf8")}${truncationMarker(left)}${tailText.toString("utf8")}`,
      raw: copyOf(Buffer.concat([head, tail])),
      bytes,
      truncated: true,
    };
  }
}

function copyOf(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes);
}

const MAX_CONTINUATION = 3;

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

function sequenceLength(lead: number): number {
  if (lead >= 0xf0) return 4;
  if (lead >= 0xe0) return 3;
  return lead >= 0xc0 ? 2 : 1;
}

/** Where an incomplete character at the end starts; the length if there is none. */
export function endOfWholeCharacters(bytes: Uint8Array): number {
  let lead = bytes.length - 1;
  while (lead > 0 && bytes.length - lead <= MAX_CONTINUATION && isContinuation(bytes[lead])) lead--;
  const value = bytes[lead];
  return value !== undefined && lead + sequenceLength(value) > bytes.length ? lead : bytes.length;
}

/** How many bytes at the front belong to a character whose start was left out. */
function startOfWholeCharacters(bytes: Uint8Array): number {
  let start = 0;
  while (start < MAX_CONTINUATION && isContinuation(bytes[start])) start++;
  return start;
}
