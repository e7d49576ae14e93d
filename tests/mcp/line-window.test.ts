import { describe, expect, it } from "vitest";
import { LineWindow, type WantedLines } from "../../src/mcp/line-window.js";

function windowOf(pieces: readonly string[], wanted: Partial<WantedLines> = {}): LineWindow {
  const window = new LineWindow({ first: 1, most: 100, room: 100, hidden: {}, ...wanted });
  for (const piece of pieces) window.push(piece);
  window.end();
  return window;
}

describe("some lines of a text", () => {
  it("are the same wherever its pieces end", () => {
    const text = "one\n\ntwo ü\nthree";
    for (let at = 0; at <= text.length; at += 1) {
      const { lines, count } = windowOf([text.slice(0, at), text.slice(at)]);
      expect([at, lines, count]).toEqual([at, ["one", "", "two ü", "three"], 4]);
    }
    expect(windowOf(["one\n"])).toMatchObject({ lines: ["one"], count: 1 });
    expect(windowOf(["\n"])).toMatchObject({ lines: [""], count: 1 });
    expect(windowOf([])).toMatchObject({ lines: [], count: 0 });
  });

  it("are those that are wanted; all are counted", () => {
    const text = Array.from({ length: 50 }, (_, at) => `${at + 1}\n`).join("");
    expect(windowOf([text], { first: 3, most: 2 })).toMatchObject({ lines: ["3", "4"], count: 50, wasCut: false });
    expect(windowOf([text], { room: 6 })).toMatchObject({ lines: ["1", "2", "3"], count: 50, wasCut: false });
  });

  it("are cut only where one alone is too long, at a whole character, and never within a secret", () => {
    expect(windowOf(["short\n", "x".repeat(200), "\nlast\n"])).toMatchObject({ lines: ["short"], count: 3 });
    const long = windowOf(["ü".repeat(100), "ü".repeat(100), "\nlast\n"], { room: 5 });
    expect(long).toMatchObject({ lines: ["üü… [the line has 400 bytes]"], count: 2, wasCut: true });
    const secret = windowOf([`${"x".repeat(90)}the-secret-of-somebody`], {
      hidden: { secrets: ["the-secret-of-somebody"] },
    });
    expect(secret.lines[0]).toBe(`${"x".repeat(90)}… [the line has 112 bytes]`);
  });

  it("cost no more where a line is very long", () => {
    const window = new LineWindow({ first: 1, most: 100, room: 1_000, hidden: {} });
    const piece = "x".repeat(1 << 16);
    // A gigabyte, which would not fit into one text.
    for (let at = 0; at < 1 << 14; at += 1) window.push(piece);
    window.end();
    expect(window.lines).toEqual([`${"x".repeat(1_000)}… [the line has ${1 << 30} bytes]`]);
  });
});
