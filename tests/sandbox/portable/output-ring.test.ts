import { describe, expect, test } from "vitest";
import type { ProcessStream } from "../../../contracts/types.js";
import { OutputRing, RING_BYTES } from "../../../src/sandbox/portable/output-ring.js";

/** The same numbers below a bound each time. */
function randomNumbers(seed: number): (bound: number) => number {
  let state = seed;
  return (bound) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % bound;
  };
}

/** Everything that was ever written, for comparison. */
class Everything {
  #bytes = Buffer.alloc(0);
  #streams: ProcessStream[] = [];

  push(stream: ProcessStream, chunk: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, chunk]);
    for (let i = 0; i < chunk.length; i++) this.#streams.push(stream);
  }

  of(stream?: ProcessStream, from = 0): Buffer {
    const kept = this.#streams.slice(from).map((each) => stream === undefined || each === stream);
    return Buffer.from(this.#bytes.subarray(from).filter((_, i) => kept[i]));
  }
}

describe("the ring of a process", () => {
  test("gives back everything, by stream and together, while there is room", () => {
    const [ring, all, random] = [new OutputRing(), new Everything(), randomNumbers(7)];
    for (let i = 0; i < 300; i++) {
      const stream = random(3) === 0 ? "stderr" : "stdout";
      const chunk = Buffer.from(Array.from({ length: random(50) }, () => random(256)));
      ring.push(stream, chunk);
      all.push(stream, chunk);
      for (const which of [undefined, "stdout", "stderr"] as const) {
        const expected = all.of(which);
        const at = random(expected.length + 1);
        const most = 1 + random(100);
        const { data, cursor, missed } = ring.read(at, most, which);
        expect(missed).toBe(0);
        expect(Buffer.from(data).equals(expected.subarray(at, at + most))).toBe(true);
        expect(cursor).toBe(at + data.length);
        expect(ring.written(which)).toBe(expected.length);
      }
    }
  });

  test("keeps the last mebibyte of both, and counts what is gone of each", () => {
    const ring = new OutputRing();
    const all = new Everything();
    const random = randomNumbers(11);
    for (const size of [300_000, 5, 400_000, 70_000, 1, 500_000, 3, 250_000]) {
      const stream = size % 2 === 0 ? "stdout" : "stderr";
      const chunk = Buffer.alloc(size, random(256));
      ring.push(stream, chunk);
      all.push(stream, chunk);
    }
    const total = ring.written();
    const gone = total - RING_BYTES;
    const both = ring.read(0, total);
    expect([both.data.length, both.cursor, both.missed]).toEqual([RING_BYTES, total, gone]);
    expect(Buffer.from(both.data).equals(all.of(undefined, gone))).toBe(true);
    for (const stream of ["stdout", "stderr"] as const) {
      const kept = all.of(stream, gone);
      const part = ring.read(0, total, stream);
      expect(Buffer.from(part.data).equals(kept)).toBe(true);
      expect([part.missed, part.cursor]).toEqual([ring.written(stream) - kept.length, ring.written(stream)]);
    }
  });

  test("keeps the end of a chunk that is larger than itself", () => {
    const ring = new OutputRing();
    ring.push("stderr", Buffer.from("before"));
    ring.push("stdout", Buffer.concat([Buffer.alloc(RING_BYTES, 1), Buffer.from("end")]));
    const { data, missed } = ring.read(0, RING_BYTES);
    expect([data.length, missed, Buffer.from(data.subarray(-4)).toString("latin1")]).toEqual([
      RING_BYTES,
      9,
      "\x01end",
    ]);
    expect(ring.read(0, 10, "stderr")).toEqual({ data: Buffer.alloc(0), cursor: 6, missed: 6 });
    expect(ring.read(0, 10, "stdout").missed).toBe(3);
  });

  test("keeps fewer bytes when the streams take turns too often", () => {
    const ring = new OutputRing();
    for (let i = 0; i < 100_000; i++) ring.push(i % 2 === 0 ? "stdout" : "stderr", Buffer.of(i % 251));
    const { data, missed, cursor } = ring.read(0, RING_BYTES);
    expect([data.length, missed, cursor]).toEqual([16_384, 100_000 - 16_384, 100_000]);
    expect(data[0]).toBe((100_000 - 16_384) % 251);
    expect(ring.read(0, RING_BYTES, "stderr").data.length).toBe(8_192);
    ring.push("stderr", Buffer.alloc(3 * RING_BYTES, 9));
    expect(ring.read(0, 1).missed).toBe(100_000 + 2 * RING_BYTES);
  });
});
