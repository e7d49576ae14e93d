import type { ProcessStream } from "../../../contracts/types.js";

/** How much output of one process is kept: its last mebibyte, both streams together. */
export const RING_BYTES: number = 1 << 20;
const FIRST_BYTES = 4 << 10;
/** How often the kept output may change between the streams. A process that writes single bytes in turns must not fill our memory with turns. */
const MAX_TURNS = 16_384;
const PASSED_TURNS = 1_024;

/** A part of what a process wrote. */
export interface RingPart {
  readonly data: Uint8Array;
  /** The position after `data`. */
  readonly cursor: number;
  /** How many bytes after the asked position are gone. */
  readonly missed: number;
}

/**
 * The last output of a process, both streams in the order in which it came.
 *
 * A position counts the bytes of one stream, or of both, since the process started. Byte n of both is stored at n modulo the size of the buffer.
 */
export class OutputRing {
  #bytes = Buffer.alloc(0);
  #oldest = 0;
  #end = 0;
  /** Where the streams take turns: positions in both. The turns before `#head` are gone. */
  #turns: number[] = [];
  #head = 0;
  /** The stream of turn 0; the others follow from it. */
  #first: ProcessStream = "stdout";
  readonly #written = { stdout: 0, stderr: 0 };
  readonly #dropped = { stdout: 0, stderr: 0 };

  /** How many bytes were written, kept or not. */
  written(stream?: ProcessStream): number {
    return stream === undefined ? this.#end : this.#written[stream];
  }

  /** Adds a chunk; the oldest bytes go when there is no room. */
  push(stream: ProcessStream, chunk: Uint8Array): void {
    if (chunk.length === 0) return;
    this.#takeTurn(stream);
    const kept = chunk.length > RING_BYTES ? chunk.subarray(chunk.length - RING_BYTES) : chunk;
    this.#written[stream] += chunk.length;
    const end = this.#end + chunk.length;
    this.#makeRoom(Math.min(end - this.#oldest, RING_BYTES));
    this.#end = end;
    this.#store(end - kept.length, kept);
    this.#dropUntil(end - RING_BYTES);
  }

  /** What comes after a position, at most so many bytes. With `stream` positions count that stream only. */
  read(position: number, maxBytes: number, stream?: ProcessStream): RingPart {
    const start = Math.max(position, stream === undefined ? this.#oldest : this.#dropped[stream]);
    const data = stream === undefined ? this.#copy(start, start + maxBytes) : this.#gather(stream, start, maxBytes);
    return { data, cursor: start + data.length, missed: start - position };
  }

  #gather(stream: ProcessStream, start: number, maxBytes: number): Buffer {
    const pieces: Buffer[] = [];
    let skip = start - this.#dropped[stream];
    let room = maxBytes;
    for (let turn = this.#head; turn < this.#turns.length && room > 0; turn++) {
      if (this.#streamOf(turn) !== stream) continue;
      const from = Math.max(this.#turns[turn] ?? 0, this.#oldest);
      const length = (this.#turns[turn + 1] ?? this.#end) - from;
      if (skip < length) {
        const piece = this.#copy(from + skip, Math.min(from + length, from + skip + room));
        room -= piece.length;
        pieces.push(piece);
      }
      skip = Math.max(0, skip - length);
    }
    return pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces);
  }

  #copy(from: number, until: number): Buffer {
    const to = Math.min(until, this.#end);
    const copy = Buffer.allocUnsafeSlow(Math.max(0, to - from));
    const size = this.#bytes.length;
    for (let at = from; at < to; ) {
      const place = at % size;
      const length = Math.min(size - place, to - at);
      this.#bytes.copy(copy, at - from, place, place + length);
      at += length;
    }
    return copy;
  }

  #store(position: number, bytes: Uint8Array): void {
    const size = this.#bytes.length;
    const place = position % size;
    const length = Math.min(size - place, bytes.length);
    this.#bytes.set(length === bytes.length ? bytes : bytes.subarray(0, length), place);
    if (length < bytes.length) this.#bytes.set(bytes.subarray(length), 0);
  }

  #makeRoom(needed: number): void {
    if (needed <= this.#bytes.length) return;
    let size = Math.max(FIRST_BYTES, this.#bytes.length);
    while (size < needed) size *= 2;
    const kept = this.#copy(this.#oldest, this.#end);
    this.#bytes = Buffer.allocUnsafeSlow(size);
    if (kept.length > 0) this.#store(this.#oldest, kept);
  }

  #streamOf(turn: number): ProcessStream {
    return (turn % 2 === 0) === (this.#first === "stdout") ? "stdout" : "stderr";
  }

  #takeTurn(stream: ProcessStream): void {
    const last = this.#turns.length - 1;
    if (last < 0) this.#first = stream;
    else if (this.#streamOf(last) === stream) return;
    this.#turns.push(this.#end);
    if (this.#turns.length - this.#head > MAX_TURNS) this.#dropUntil(this.#turns[this.#head + 1] ?? 0);
  }

  #dropUntil(position: number): void {
    while (this.#oldest < position) {
      const next = Math.min(position, this.#turns[this.#head + 1] ?? this.#end);
      this.#dropped[this.#streamOf(this.#head)] += next - this.#oldest;
      this.#oldest = next;
      if (next === this.#turns[this.#head + 1]) this.#head++;
    }
    if (this.#head < PASSED_TURNS) return;
    // An even number, so that turn 0 is of the same stream as before.
    const passed = this.#head - (this.#head % 2);
    this.#turns.splice(0, passed);
    this.#head -= passed;
  }
}
