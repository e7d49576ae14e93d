import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { assertPathConfined, isPathConfined } from "../../src/util/path.js";

describe("assertPathConfined", () => {
  test.each([
    ["x.txt", "/a/b", "/a/b/x.txt"],
    ["", "/a/b", "/a/b"],
    [".", "/a/b/", "/a/b"],
    ["/a/b", "/a/b/", "/a/b"],
    ["/a/b/", "/a/b", "/a/b"],
    ["c/../d", "/a/b", "/a/b/d"],
    ["../b/d", "/a/b", "/a/b/d"],
    ["..x", "/a/b", "/a/b/..x"],
    ["/anything", "/", "/anything"],
    ["../..", "/", "/"],
  ])("%j in %j is %j", (target, base, resolved) => {
    expect(assertPathConfined(target, base)).toBe(resolved);
    expect(isPathConfined(target, base)).toBe(true);
  });

  test.each([
    ["..", "/a/b"],
    ["../x", "/a/b"],
    ["/a/bc", "/a/b"],
    ["../bc", "/a/b"],
    ["/a", "/a/b"],
    ["/", "/a/b"],
    ["c/../../../etc/passwd", "/a/b"],
  ])("%j in %j is refused with the exact message", (target, base) => {
    expect(() => assertPathConfined(target, base)).toThrow(
      expect.objectContaining({
        code: "path_confinement",
        message: `path confinement violation: ${target} is outside base directory`,
      }),
    );
    expect(isPathConfined(target, base)).toBe(false);
  });

  test("a NUL byte is refused", () => {
    expect(() => assertPathConfined("a\0b", "/a")).toThrow(expect.objectContaining({ code: "invalid_path" }));
    expect(isPathConfined("a\0b", "/a")).toBe(false);
  });

  test("a relative base would depend on the process's directory and is refused", () => {
    expect(() => assertPathConfined("x", "a/b")).toThrow(expect.objectContaining({ code: "invalid_path" }));
    expect(() => isPathConfined("x", "a/b")).toThrow(/absolute/);
  });

  test("a target that is no string is refused", () => {
    expect(() => assertPathConfined(7 as unknown as string, "/a")).toThrow(/must be a string/);
  });

  test("never yields a path outside, and agrees with isPathConfined", () => {
    const segment = fc.oneof(fc.constantFrom("..", ".", "", "a", "b", "bc", "..a"), fc.string({ maxLength: 4 }));
    const path = fc.array(segment, { maxLength: 8 }).map((parts) => parts.join("/"));
    fc.assert(
      fc.property(path, path, (target, tail) => {
        const base = `/a/b/${tail.replaceAll("\0", "")}`;
        const confined = isPathConfined(target, base);
        if (!confined) {
          expect(() => assertPathConfined(target, base)).toThrow();
          return;
        }
        const resolved = assertPathConfined(target, base).split("/").filter(Boolean);
        const root = assertPathConfined(".", base).split("/").filter(Boolean);
        expect(resolved.slice(0, root.length)).toEqual(root);
        expect(resolved).not.toContain("..");
      }),
      { numRuns: 2000 },
    );
  });
});
