import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { InertStream } from "../../src/util/inert-stream.js";

function shown(text: string | Uint8Array, colours = true): string {
  const stream = new InertStream({ colours });
  return stream.push(Buffer.from(text)) + stream.end();
}

/** Everything that a colour may be; nothing else may have an escape in it. */
const COLOUR = new RegExp(`${String.fromCharCode(27)}\\[[\\d;:]*m`, "g");

describe("colours in a stream for a terminal", () => {
  test.each([
    "\x1b[31mred\x1b[0m",
    "\x1b[mplain",
    "\x1b[1;4;38;5;208;48;2;1;2;3mbold\x1b[0m",
    "\x1b[38:2::1:2:3mcolon\x1b[0m",
    "\x1b[4:3;58;5;8mcurly\x1b[m",
    "\x1b[90;107mbright\x1b[0m",
  ])("%j passes", (text) => {
    expect(shown(text)).toBe(text);
  });

  test.each([
    ["concealed text", "\x1b[8mhidden"],
    ["concealed text among colours", "\x1b[31;8mhidden"],
    ["a palette without its number", "\x1b[38;5m"],
    ["a palette that there is not", "\x1b[38;8;8m"],
    ["another font", "\x1b[11m"],
    ["keys that are sent otherwise", "\x1b[>4;1m"],
    ["a private sequence", "\x1b[?25m"],
    ["an intermediate byte", "\x1b[1 m"],
    ["a number that is too long", "\x1b[0000000031m"],
    ["a sequence that is too long", `\x1b[${"1;".repeat(60)}1m`],
    ["clearing", "\x1b[2J"],
    ["moving", "\x1b[10;10H"],
    ["a title", "\x1b]0;title\x07"],
    ["a device string", "\x1bP+q\x1b\\"],
    ["a C1 introducer", "\u009b31m"],
    ["a C1 byte", Buffer.from([0x9b, 0x33, 0x31, 0x6d])],
    ["an end in the middle", "\x1b[31"],
    ["an escape at the end", "\x1b"],
  ])("%s stays text", (_, text) => {
    expect(shown(text)).not.toMatch(/\p{Cc}/u);
    expect(shown(text)).toBe(shown(text, false));
  });

  test("end with the stream, once", () => {
    expect(shown("\x1b[31mred")).toBe("\x1b[31mred\x1b[0m");
    expect(shown("\x1b[31mred\x1b[0m.")).toBe("\x1b[31mred\x1b[0m.");
    const stream = new InertStream({ colours: true });
    expect([stream.push(Buffer.from("\x1b[1mx")), stream.end(), stream.end()]).toEqual(["\x1b[1mx", "\x1b[0m", ""]);
  });

  test("are none unless they are asked for", () => {
    expect(shown("\x1b[31mred", false)).toBe("\\x1b[31mred");
  });

  test("and everything else come out the same wherever the chunks end", () => {
    const piece = fc.constantFrom(
      "\x1b",
      "[",
      "3",
      "1",
      ";",
      ":",
      "8",
      "m",
      "\x1b[31m",
      "é",
      "\r",
      "\n",
      "\u202e",
      "J",
      ">",
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 60 }), fc.array(fc.nat(80), { maxLength: 6 }), (pieces, cuts) => {
        const bytes = Buffer.from(pieces.join(""));
        const borders = [0, ...cuts.map((cut) => Math.min(cut, bytes.length)).sort((a, b) => a - b), bytes.length];
        const stream = new InertStream({ colours: true });
        const parts = borders.slice(1).map((end, at) => stream.push(bytes.subarray(borders[at], end)));
        const whole = parts.join("") + stream.end();
        expect(whole).toBe(shown(bytes));
        expect(whole.replace(COLOUR, "")).not.toMatch(/(?!\n|\r)\p{Cc}|\u202e/u);
      }),
      { numRuns: 500 },
    );
  });
});
