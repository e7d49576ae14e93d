import fc from "fast-check";
import { expect, test } from "vitest";
import { ByteSearch } from "../../src/util/redact/byte-search.js";

/** Few letters, so that there are many matches, and matches that overlap. */
const letters = (minLength: number, maxLength: number): fc.Arbitrary<string> =>
  fc.string({ unit: fc.constantFrom("a", "b", "\xff"), minLength, maxLength });
const patterns = fc.uniqueArray(letters(2, 9), { minLength: 1, maxLength: 30 });

function prepare(texts: readonly string[]): ByteSearch {
  return new ByteSearch(texts.map((text) => ({ text: Buffer.from(text, "latin1"), label: Buffer.alloc(0) })));
}

test("finds what a search for one after the other finds, in the same order", () => {
  fc.assert(
    fc.property(patterns, letters(0, 60), fc.nat(70), (texts, text, most) => {
      const limit = Math.min(most, text.length);
      const expected = Array.from({ length: limit }, (_, start) =>
        texts
          .filter((each) => text.startsWith(each, start))
          .sort((one, other) => other.length - one.length)
          .map((each) => [start, each]),
      ).flat();
      const found = prepare(texts).occurrences(Buffer.from(text, "latin1"), limit);
      expect(found.map(({ start, pattern }) => [start, pattern.text.toString("latin1")])).toEqual(expected);
    }),
  );
});

test("knows where a match may start that is not complete yet", () => {
  fc.assert(
    fc.property(patterns, letters(0, 30), (texts, text) => {
      const starts = Array.from({ length: text.length }, (_, at) => at);
      const mayStart = (at: number): boolean =>
        texts.some((each) => each.length > text.length - at && each.startsWith(text.slice(at)));
      const expected = starts.find(mayStart) ?? text.length;
      expect(prepare(texts).firstUncertain(Buffer.from(text, "latin1"))).toBe(expected);
    }),
  );
});

test("finds texts that are longer than its window", () => {
  const long = "0123456789".repeat(40);
  const texts = [long, `${long}x`, `y${long}`];
  const found = prepare(texts).occurrences(Buffer.from(`..y${long}x..`), 1000);
  expect(found.map(({ start, pattern }) => [start, pattern.text.length])).toEqual([
    [2, 401],
    [3, 401],
    [3, 400],
  ]);
});
