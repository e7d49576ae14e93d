import { describe, expect, it } from "vitest";
import { mergeDurations, slowestFiles } from "../../scripts/durations.mjs";
import { isApart, longestFirst, readDurations, testFiles } from "../support/run/durations.js";

describe("the order of test files", () => {
  it("is made of durations that name no file that is gone", () => {
    const files = testFiles();
    const gone = Object.keys(readDurations()).filter((file) => !files.includes(file));
    expect(gone, "run `npm run test:durations -- <a test file>`: it drops them from tests/durations.json").toEqual([]);
  });

  it("begins with files nobody measured, then the longest", () => {
    const durations: Record<string, number> = { short: 1, long: 3, middle: 2 };
    expect(longestFirst(["short", "new", "long", "middle"], (file) => durations[file])).toEqual([
      ...["new", "long", "middle", "short"],
    ]);
  });

  it("gives a process of its own to what takes long, and to what says so", () => {
    expect(isApart("", 60_000)).toBe(true);
    expect(isApart("// own process: leaves a handler\nimport", undefined)).toBe(true);
    expect(isApart('const text = "// own process: quoted";', 500)).toBe(false);
    expect(isApart("// own process:\n", undefined)).toBe(false);
  });
});

describe("durations are written down", () => {
  it("rounded, sorted by name, and not anew where little has changed", () => {
    const recorded = { b: 20_000, d: 500, e: 20_000, f: 3_000 };
    const measured = { a: 12_345, b: 29_000, c: 3, d: 1_400, e: 31_000 };
    const merged = mergeDurations(recorded, measured);
    expect(merged).toEqual({ a: 10_000, b: 20_000, c: 500, d: 500, e: 30_000, f: 3_000 });
    expect(Object.keys(merged)).toEqual(["a", "b", "c", "d", "e", "f"]);
  });

  it("and shown in seconds, the longest first", () => {
    expect(slowestFiles({ a: 1_000, b: 61_234, c: 3 }, 2)).toEqual(["  61.2 s  b", "   1.0 s  a"]);
  });
});
