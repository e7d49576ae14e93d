import { describe, expect, test } from "vitest";
import { RelayPieces } from "../../../src/sandbox/guest/relay-pieces.js";

/** What the guest sends first: its environment. */
function greeting(environment: Readonly<Record<string, string>> = {}, version = 2): Buffer {
  const text = Object.entries(environment).map(([name, value]) => `${name}=${value}\0`);
  const body = Buffer.from(text.join(""));
  const head = Buffer.alloc(8);
  head.writeUInt32LE(4 + body.length);
  head.writeUInt32LE(version, 4);
  return Buffer.concat([head, body]);
}

function piece(position: number, content: string, next = 0): Buffer {
  const head = Buffer.alloc(16);
  head.writeUInt32LE(content.length);
  head.writeUInt32LE(next, 4);
  head.writeBigUInt64LE(BigInt(position), 8);
  return Buffer.concat([head, Buffer.from(content)]);
}

/** Says all of it to a decoder, in parts of this size, and gives the guest's bytes. */
function read(decoder: RelayPieces, said: Buffer, size = said.length): string {
  let text = "";
  for (let at = 0; at < said.length; at += size) {
    for (const bytes of decoder.push(said.subarray(at, at + size))) text += Buffer.from(bytes).toString();
  }
  return text;
}

describe("what a connection brings", () => {
  test.each([1, 3, 7, 1_000])("is understood in parts of %i bytes", (size) => {
    const letters: number[] = [];
    const decoder = new RelayPieces((next) => letters.push(next));
    const said = Buffer.concat([
      greeting({ PATH: "/bin", LINES: "a\nb", EMPTY: "" }),
      piece(0, "", 2),
      piece(0, "hello "),
      piece(6, "world", 5),
    ]);
    expect(read(decoder, said, size)).toBe("hello world");
    expect(decoder.environment).toEqual({ PATH: "/bin", LINES: "a\nb", EMPTY: "" });
    expect(decoder.position).toBe(11);
    expect(letters).toEqual([2, 0, 5]);
  });

  test("goes on with another one where the last one was cut, in the middle of a piece", () => {
    const decoder = new RelayPieces(() => undefined);
    const first = Buffer.concat([greeting(), piece(0, "hello world")]);
    expect(read(decoder, first.subarray(0, first.length - 5))).toBe("hello ");
    decoder.restart();
    expect(read(decoder, Buffer.concat([greeting(), piece(6, "world")]))).toBe("world");
    expect(decoder.position).toBe(11);
  });

  test.each([
    ["comes twice", 0],
    ["is missing", 9],
  ])("is not taken when something %s", (_what, position) => {
    const decoder = new RelayPieces(() => undefined);
    read(decoder, Buffer.concat([greeting(), piece(0, "hello")]));
    expect(() => read(decoder, piece(position, "again"))).toThrow(`expected position 5, got ${position}`);
    expect(decoder.position).toBe(5);
  });

  test("is tampered if no guest says such things", () => {
    const huge = piece(0, "");
    huge.writeUInt32LE((64 << 10) + 1);
    const long = greeting();
    long.writeUInt32LE((256 << 10) + 1);
    for (const said of [Buffer.concat([greeting(), huge]), long, greeting({}, 1), Buffer.alloc(8)]) {
      const decoder = new RelayPieces(() => undefined);
      expect(() => read(decoder, said)).toThrow(expect.objectContaining({ code: "tampered" }));
    }
  });
});
