import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { InertStream } from "../../src/util/inert-stream.js";
import { toInert, toInertLine } from "../../src/util/inert-text.js";

function filter(...chunks: (string | Uint8Array)[]): string {
  const stream = new InertStream();
  const pieces = chunks.map((chunk) => stream.push(typeof chunk === "string" ? Buffer.from(chunk) : chunk));
  return pieces.join("") + stream.end();
}

/** What a terminal acts on or does not show: controls, C1, format and zero-width characters. */
const ACTIVE = /\p{Cc}|\p{Cf}|\p{Zl}|\p{Zp}|\u034f|\u115f|\u1160|\u17b4|\u17b5|\u3164|\uffa0/u;

describe("bytes for a terminal", () => {
  it.each([
    ["a title", "\x1b]0;owned\x07", "\\x1b]0;owned\\x07"],
    ["a link", "\x1b]8;;http://x\x1b\\y", "\\x1b]8;;http://x\\x1b\\y"],
    ["the clipboard", "\x1b]52;c;ZQ==\x07", "\\x1b]52;c;ZQ==\\x07"],
    ["a device control string", "\x1bP1$r\x1b\\", "\\x1bP1$r\\x1b\\"],
    ["clearing and asking", "\x1b[2J\x1b[6n", "\\x1b[2J\\x1b[6n"],
    ["C1 as a byte", Uint8Array.of(0x9b, 0x32, 0x4a), "\\x9b2J"],
    ["C1 in UTF-8", Uint8Array.of(0xc2, 0x9b, 0x32, 0x4a), "\\u009b2J"],
    ["C1 in an overlong form", Uint8Array.of(0xc0, 0x9b, 0xe0, 0x82, 0x9b), "\\xc0\\x9b\\xe0\\x82\\x9b"],
    ["overwriting a line", "rm -rf\recho  ", "rm -rf\\recho  "],
    ["backspace and delete", "a\b\bb\x7f", "a\\b\\bb\\x7f"],
    ["bidi", "a\u202eb\u2066c\u200f", "a\\u202eb\\u2066c\\u200f"],
    ["zero width", "a\u200bb\u2060c\ufeffd\u200de\u00adf", "a\\u200bb\\u2060c\\ufeffd\\u200de\\u00adf"],
    ["tags", "a\u{e0041}", "a\\u{e0041}"],
    ["line separators", "a\u2028b\u2029", "a\\u2028b\\u2029"],
    ["a bell and a form feed", "\x07\x0c\x0b\x05", "\\x07\\x0c\\x0b\\x05"],
    ["a surrogate", Uint8Array.of(0xed, 0xa0, 0x80), "\\xed\\xa0\\x80"],
    ["a character that never ends", Uint8Array.of(0xf0, 0x9f), "\\xf0\\x9f"],
  ])("show %s", (_, bytes, shown) => {
    expect(filter(bytes)).toBe(shown);
  });

  it("let text through, line ends of both kinds and emoji included", () => {
    const text = "plain\tüñ 漢字 ✔️ 😀\r\nnext\n";
    expect(filter(text)).toBe(text);
  });

  it("come out the same wherever the stream was cut, whatever it holds", () => {
    const nasty = fc.constantFrom("\x1b", "\r", "\n", "\r\n", "é", "😀", "\u202e", "\u009b", "a", "\b");
    const piece = fc.oneof(
      nasty.map((text) => Buffer.from(text)),
      fc.uint8Array({ maxLength: 6 }).map((bytes) => Buffer.from(bytes)),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 20 }), fc.array(fc.nat(120), { maxLength: 12 }), (pieces, cuts) => {
        const whole = Buffer.concat(pieces);
        const borders = [0, ...cuts.map((cut) => Math.min(cut, whole.length)).sort((a, b) => a - b), whole.length];
        const chunks = borders.slice(1).map((end, index) => whole.subarray(borders[index], end));
        const shown = filter(...chunks);
        expect(shown).toBe(filter(whole));
        expect(shown.replace(/\r\n|\n|\t/g, "")).not.toMatch(ACTIVE);
      }),
      { numRuns: 3_000 },
    );
  });

  it("are held back only while they are not certain", () => {
    const stream = new InertStream();
    expect(stream.push(Buffer.from("prompt> "))).toBe("prompt> ");
    expect(stream.push(Uint8Array.of(0xf0, 0x9f, 0x98))).toBe("");
    expect(stream.push(Uint8Array.of(0x80, 0x0d))).toBe("😀");
    expect(stream.push(Buffer.from("x"))).toBe("\\rx");
    expect(stream.end()).toBe("");
  });
});

describe("text for a line", () => {
  it("shows controls, and line ends too where there may be one line only", () => {
    expect(toInert("a\nb\x1b[1m\r")).toBe("a\nb\\x1b[1m\\r");
    expect(toInertLine("a\nb\tc\u202e")).toBe("a\\nb\\tc\\u202e");
  });
});
