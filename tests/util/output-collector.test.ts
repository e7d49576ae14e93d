import fc from "fast-check";
import { expect, test } from "vitest";
import { OutputCollector } from "../../src/util/output-collector.js";
import { truncationMarker } from "../../src/util/sanitize.js";

const chunks = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 30 });
const cap = fc.integer({ min: 0, max: 200 });

function collect(pieces: readonly Uint8Array[], limit: number): OutputCollector {
  const collector = new OutputCollector(limit);
  for (const piece of pieces) collector.push(piece);
  return collector;
}

/** Cuts bytes at arbitrary places, so that characters fall apart. */
function pieces(bytes: Uint8Array, size: number): Uint8Array[] {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
    bytes.subarray(index * size, (index + 1) * size),
  );
}

test("every byte is counted and the kept ones are the head and the tail of what was written", () => {
  fc.assert(
    fc.property(chunks, cap, (written, limit) => {
      const all = Buffer.concat(written);
      const { raw, bytes, truncated } = collect(written, limit).result(true);
      expect(bytes).toBe(all.length);
      expect(truncated).toBe(all.length > limit);
      const head = all.subarray(0, Math.ceil(limit / 2));
      const tail = all.subarray(all.length - Math.floor(limit / 2));
      const kept = all.length > limit ? Buffer.concat([head, tail]) : all;
      expect(Buffer.from(raw).equals(kept)).toBe(true);
    }),
  );
});

test("whoever leaves out what would not be kept anyway, and says how much, changes nothing", () => {
  const written = fc.uint8Array({ minLength: 1, maxLength: 900 });
  fc.assert(
    fc.property(written, cap, fc.integer({ min: 1, max: 70 }), fc.nat(40), (bytes, limit, size, more) => {
      const first = limit + more;
      const last = Math.floor(limit / 2);
      const left = Math.max(0, bytes.length - first - last);
      const given = left === 0 ? [bytes] : [bytes.subarray(0, first), bytes.subarray(bytes.length - last)];
      const result = collect(
        given.flatMap((piece) => pieces(piece, size)),
        limit,
      ).result(true, left);
      expect(result).toEqual(collect([bytes], limit).result(true));
    }),
  );
});

test("what was left out of too little is told, and nothing is made up for it", () => {
  const kept = (given: readonly Uint8Array[]): unknown => {
    const { raw, bytes, truncated, text } = collect(given, 100).result(true, 7);
    return [Buffer.from(raw).toString(), bytes, truncated, text];
  };
  expect(kept([])).toEqual(["", 7, true, truncationMarker(7)]);
  const short = Buffer.from("abc");
  expect(kept([short])).toEqual(["abc", 10, true, `abc${truncationMarker(7)}`]);
  expect(kept(pieces(short, 1))).toEqual(["abc", 10, true, `abc${truncationMarker(7)}`]);
});

test("the text of valid UTF-8 has no broken character, is within the cap and tells what is missing", () => {
  const text = fc.string({ unit: "binary", maxLength: 200 });
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 7 }), cap, (written, size, limit) => {
      const all = Buffer.from(written.replaceAll("\ufffd", "?"));
      const { text: kept, truncated } = collect(pieces(all, size), limit).result(false);
      expect(kept).not.toContain("\ufffd");
      if (!truncated) {
        expect(kept).toBe(all.toString());
        return;
      }
      const found = /\n\[\.\.\. (\d+) bytes left out \.\.\.\]\n/.exec(kept);
      const left = Number(found?.[1]);
      const marker = truncationMarker(left);
      const at = kept.indexOf(marker);
      const head = kept.slice(0, at);
      const tail = kept.slice(at + marker.length);
      expect(Buffer.byteLength(head) + Buffer.byteLength(tail)).toBe(all.length - left);
      expect(Buffer.byteLength(head) + Buffer.byteLength(tail)).toBeLessThanOrEqual(limit);
      expect(all.toString().startsWith(head)).toBe(true);
      expect(all.toString().endsWith(tail)).toBe(true);
    }),
  );
});

test("only what a cut broke is trimmed: at most three bytes on each side", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", minLength: 60, maxLength: 120 }), (written) => {
      const all = Buffer.from(written);
      const { text } = collect([all], 40).result(false);
      const left = Number(/\[\.\.\. (\d+) bytes/.exec(text)?.[1]);
      expect(left).toBeGreaterThanOrEqual(all.length - 40);
      expect(left).toBeLessThanOrEqual(all.length - 40 + 6);
    }),
  );
});

test("a character that comes in two pieces is one character", () => {
  const [first, second] = [Buffer.from([0xe2, 0x82]), Buffer.from([0xac])];
  expect(collect([first, second], 100).result(false).text).toBe("€");
});

test("a chunk that is larger than the cap is cut like many small ones", () => {
  const all = Buffer.from(Array.from({ length: 1000 }, (_, index) => index % 251));
  const whole = collect([all], 10).result(true);
  const parts = collect(pieces(all, 3), 10).result(true);
  expect(whole).toEqual(parts);
  expect([...whole.raw]).toEqual([...all.subarray(0, 5), ...all.subarray(995)]);
});

test("a megabyte in pieces grows without a loss", () => {
  const all = Buffer.from(Uint32Array.from({ length: 250_000 }, (_, index) => index).buffer);
  expect(Buffer.from(collect(pieces(all, 1000), 2_000_000).result(true).raw).equals(all)).toBe(true);
  const { raw } = collect(pieces(all, 1000), 500_000).result(true);
  expect(Buffer.from(raw).equals(Buffer.concat([all.subarray(0, 250_000), all.subarray(750_000)]))).toBe(true);
});

test("nothing written is nothing, and a cap of zero keeps only the count", () => {
  expect(new OutputCollector(10).result(true)).toEqual({
    text: "",
    raw: new Uint8Array(0),
    bytes: 0,
    truncated: false,
  });
  const none = collect([Buffer.from("abc")], 0).result(true);
  expect(none).toEqual({ text: truncationMarker(3), raw: new Uint8Array(0), bytes: 3, truncated: true });
});

test("invalid bytes become replacement characters and stay exact in raw", () => {
  const bytes = Buffer.from([0x61, 0xff, 0x62]);
  const { text, raw } = collect([bytes], 10).result(true);
  expect(text).toBe("a\ufffdb");
  expect([...raw]).toEqual([0x61, 0xff, 0x62]);
});

test("the raw bytes are the caller's own: a later change of the chunk does not show", () => {
  const chunk = Buffer.from("abc");
  const { raw } = collect([chunk], 10).result(true);
  chunk[0] = 0x7a;
  expect(Buffer.from(raw).toString()).toBe("abc");
});
