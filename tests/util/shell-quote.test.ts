import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { shellQuote } from "../../src/util/shell.js";

describe("shellQuote", () => {
  test("[S4-AC-13] [S4-TEST-quote-simple-args] AC-13: simple args", () => {
    expect(shellQuote(["echo", "hello"])).toBe("'echo' 'hello'");
  });

  test("[S4-AC-13] [S4-TEST-quote-single-quotes] AC-13: single quotes in args", () => {
    expect(shellQuote(["echo", "it's"])).toBe("'echo' 'it'\\''s'");
  });

  test("[S4-AC-13] [S4-TEST-quote-double-quotes] AC-13: double quotes in args", () => {
    expect(shellQuote(["echo", 'say "hi"'])).toBe("'echo' 'say \"hi\"'");
  });

  test("[S4-AC-13] [S4-TEST-quote-spaces] AC-13: spaces in args", () => {
    expect(shellQuote(["git", "commit", "-m", "fix: the bug"])).toBe("'git' 'commit' '-m' 'fix: the bug'");
  });

  test("[S4-AC-13] [S4-TEST-quote-backticks-dollars] AC-13: backticks and dollar signs", () => {
    expect(shellQuote(["echo", "`whoami` $HOME"])).toBe("'echo' '`whoami` $HOME'");
  });

  test("[S4-AC-14] [S4-TEST-quote-empty-string] AC-14: empty string arg", () => {
    expect(shellQuote(["echo", ""])).toBe("'echo' ''");
  });

  test("[S4-TEST-quote-empty-argv] empty argv throws", () => {
    expect(() => shellQuote([])).toThrow(/empty/i);
  });

  test("the worked example: both kinds of quotes in one argument", () => {
    expect(shellQuote(["git", "commit", "-m", 'it\'s a "test"'])).toBe(`'git' 'commit' '-m' 'it'\\''s a "test"'`);
  });

  test("a NUL byte, which no argument can carry, is refused with its place", () => {
    expect(() => shellQuote(["echo", "a\0b"])).toThrow(/argv\[1\].*NUL/);
  });

  test("a non-string argument is refused with its place", () => {
    expect(() => shellQuote(["echo", 7 as unknown as string])).toThrow(/argv\[1\]/);
  });

  test("a real shell reads back exactly the arguments", () => {
    const nasty = fc.constantFrom(
      "'",
      '"',
      "\\",
      "`",
      "$",
      "$(id)",
      "\n",
      "\r",
      " ",
      "*",
      "~",
      "!",
      "#",
      "-",
      "é",
      "😀",
    );
    const plain = fc.string({ unit: "grapheme" }).map((text) => text.replaceAll("\0", ""));
    const argument = fc.array(fc.oneof(nasty, plain), { maxLength: 6 }).map((parts) => parts.join(""));
    fc.assert(
      fc.property(fc.array(argument, { maxLength: 5 }), (args) => {
        const out = execFileSync("/bin/sh", ["-c", shellQuote(["printf", "%s\\0", "first", ...args])]);
        expect(out.toString()).toBe(["first", ...args].map((arg) => `${arg}\0`).join(""));
      }),
      { numRuns: 60 },
    );
  });
});
