import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ByteQueue } from "../../../src/sandbox/guest/byte-queue.js";
import { ANSWER, encodeFrame, type Frame, FrameParser, MAX_BODY } from "../../../src/sandbox/guest/frames.js";

const HEADER = 13;
const bytes = (minLength: number, maxLength: number): fc.Arbitrary<Uint8Array> =>
  fc.uint8Array({ minLength, maxLength });

/** Frames that an honest guest may send. */
const answers = fc.array(
  fc
    .oneof(
      fc.record({ type: fc.constantFrom(ANSWER.stdout, ANSWER.stderr), body: bytes(1, 300) }),
      fc.record({ type: fc.constant(ANSWER.result), body: bytes(0, 5000) }),
      fc.record({ type: fc.constant(ANSWER.exit), body: bytes(6, 6) }),
      fc.record({ type: fc.constant(ANSWER.fail), body: bytes(4, 40) }),
      fc.record({ type: fc.constant(ANSWER.started), body: bytes(0, 0) }),
    )
    .chain(({ type, body }) => fc.nat(0xffffffff).map((call) => ({ type, call, body: Buffer.from(body) }))),
  { maxLength: 12 },
);

function encode(frames: readonly Frame[]): Buffer {
  return Buffer.concat(frames.map(({ type, call, body }, index) => encodeFrame(index, type, call, [body])));
}

/** Parses a stream that arrives cut at these places. */
function parse(stream: Buffer, cuts: readonly number[]): Frame[] {
  const parser = new FrameParser();
  const places = [...new Set(cuts.map((cut) => cut % (stream.length + 1))), stream.length].sort((a, b) => a - b);
  let at = 0;
  const frames: Frame[] = [];
  for (const place of places) {
    for (const frame of parser.push(stream.subarray(at, place))) frames.push(frame);
    at = place;
  }
  return frames;
}

/** Output comes in as many parts as it arrived in: what follows each other of one stream is one. */
function joined(frames: readonly Frame[]): Frame[] {
  const all: Frame[] = [];
  for (const frame of frames) {
    const last = all.at(-1);
    const isOutput = frame.type === ANSWER.stdout || frame.type === ANSWER.stderr;
    if (isOutput && last?.type === frame.type && last.call === frame.call) {
      last.body = Buffer.concat([last.body, frame.body]);
    } else {
      all.push({ ...frame, body: Buffer.from(frame.body) });
    }
  }
  return all;
}

const tampered = (work: () => unknown): void => {
  expect(work).toThrow(expect.objectContaining({ code: "tampered" }));
};

describe("FrameParser", () => {
  test("gives the same frames however the stream is cut", () => {
    fc.assert(
      fc.property(answers, fc.array(fc.nat(), { maxLength: 40 }), (frames, cuts) => {
        expect(joined(parse(encode(frames), cuts))).toEqual(joined(frames));
      }),
    );
  });

  test("gives the same frames byte by byte", () => {
    const frames = [
      { type: ANSWER.result, call: 7, body: Buffer.alloc(5000, 1) },
      { type: ANSWER.stdout, call: 0xffffffff, body: Buffer.from("x") },
    ];
    const stream = encode(frames);
    expect(
      parse(
        stream,
        [...stream].map((_, index) => index),
      ),
    ).toEqual(frames);
  });

  test("gives output on as it arrives, without a copy", () => {
    const parser = new FrameParser();
    const stream = encode([
      { type: ANSWER.stdout, call: 3, body: Buffer.from("first part, second part") },
      { type: ANSWER.exit, call: 3, body: Buffer.alloc(6) },
    ]);
    const first = parser.push(stream.subarray(0, HEADER + 10));
    expect(first.map(({ body }) => body.toString())).toEqual(["first part"]);
    expect(first[0]?.body.buffer).toBe(stream.buffer);
    const rest = parser.push(stream.subarray(HEADER + 10));
    expect(rest.map(({ type }) => type)).toEqual([ANSWER.stdout, ANSWER.exit]);
    expect(rest[0]?.body.toString()).toBe(", second part");
  });

  test("a large frame in many pieces costs no more than its bytes", () => {
    const parser = new FrameParser();
    const stream = encode([{ type: ANSWER.result, call: 1, body: Buffer.alloc(MAX_BODY, 3) }]);
    let frames: Frame[] = [];
    // Joined at every piece this would be 260 GB of copying.
    for (let at = 0; at < stream.length; at += 32) frames = frames.concat(parser.push(stream.subarray(at, at + 32)));
    expect(frames).toHaveLength(1);
    expect(frames[0]?.body.length).toBe(MAX_BODY);
  });

  test("refuses every sequence number but the next", () => {
    fc.assert(
      fc.property(answers, fc.nat(0xffffffff), (frames, sequence) => {
        fc.pre(sequence !== frames.length);
        const bad = encodeFrame(sequence, ANSWER.started, 1, []);
        tampered(() => parse(Buffer.concat([encode(frames), bad]), []));
      }),
    );
  });

  test("refuses every type that is no answer", () => {
    const known = new Set<number>(Object.values(ANSWER));
    for (let type = 0; type < 256; type++) {
      if (!known.has(type)) tampered(() => parse(encodeFrame(0, type, 1, [new Uint8Array(6)]), []));
    }
  });

  test("refuses a length that its type cannot have as soon as the header is there", () => {
    const wrong: [number, number[]][] = [
      [ANSWER.hello, [0, 5, 1025]],
      [ANSWER.started, [1]],
      [ANSWER.stdout, [0, 65537, MAX_BODY]],
      [ANSWER.stderr, [0, 65537]],
      [ANSWER.exit, [0, 5, 7]],
      [ANSWER.fail, [3, 1025]],
      [ANSWER.result, [MAX_BODY + 1, 0x7fffffff, 0xffffffff]],
      [ANSWER.stdinCredit, [0, 3, 5]],
    ];
    for (const [type, lengths] of wrong) {
      for (const length of lengths) {
        const header = encodeFrame(0, type, 1, []);
        header.writeUInt32LE(length, 0);
        expect(header).toHaveLength(HEADER);
        tampered(() => new FrameParser().push(header));
      }
    }
  });

  test("takes any bytes at all as frames or as tampered", () => {
    fc.assert(
      fc.property(bytes(0, 200), fc.array(fc.nat()), (noise, cuts) => {
        try {
          parse(Buffer.from(noise), cuts);
        } catch (error) {
          expect(error).toMatchObject({ code: "tampered" });
        }
      }),
    );
  });
});

describe("ByteQueue", () => {
  test("gives the bytes that were put in, in order, and reports each once as taken", async () => {
    const step = fc.oneof(bytes(0, 9000), fc.constant("read" as const));
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        let taken = 0;
        const queue = new ByteQueue((count) => {
          taken += count;
        });
        const iterator = queue[Symbol.asyncIterator]();
        const pushed: Uint8Array[] = [];
        const reads: Promise<IteratorResult<Uint8Array, undefined>>[] = [];
        for (const next of steps) {
          if (next === "read") {
            reads.push(iterator.next());
          } else {
            queue.push(next);
            pushed.push(Uint8Array.from(next));
          }
        }
        queue.end();
        const read: Uint8Array[] = [];
        for (const result of await Promise.all(reads)) if (!result.done) read.push(result.value);
        for await (const chunk of queue) read.push(chunk);
        expect(Buffer.concat(read).equals(Buffer.concat(pushed))).toBe(true);
        expect(taken).toBe(Buffer.concat(pushed).length);
      }),
    );
  });

  test("single bytes out of large buffers keep neither the buffers nor an object each", async () => {
    const queue = new ByteQueue(() => undefined);
    for (let i = 0; i < 10_000; i++) queue.push(Buffer.alloc(1000, i).subarray(0, 1));
    queue.push(Buffer.alloc(1 << 20, 5).subarray(0, 5000));
    queue.end();
    const chunks: Uint8Array[] = [];
    for await (const chunk of queue) chunks.push(chunk);
    expect(chunks.length).toBeLessThan(5);
    expect(chunks.reduce((sum, chunk) => sum + chunk.buffer.byteLength, 0)).toBeLessThan(64 << 10);
    expect(chunks.reduce((sum, chunk) => sum + chunk.length, 0)).toBe(15_000);
  });

  test("gives what came before an error, then the error, to everyone who waits", async () => {
    const queue = new ByteQueue(() => undefined);
    const iterator = queue[Symbol.asyncIterator]();
    queue.push(Uint8Array.of(1));
    const [first, second, third] = [iterator.next(), iterator.next(), iterator.next()];
    queue.end(new Error("gone"));
    expect(await first).toEqual({ done: false, value: Uint8Array.of(1) });
    await expect(second).rejects.toThrow("gone");
    await expect(third).rejects.toThrow("gone");
    await expect(iterator.next()).rejects.toThrow("gone");
  });
});
