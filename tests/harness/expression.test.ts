import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ExpressionError, evaluate, parseExpression, type Scope, type Value } from "../../src/harness/expression.js";
import { renderTemplate } from "../../src/harness/template.js";
import { createPathMatcher } from "../../src/util/glob.js";

const VALUES: Readonly<Record<string, Value>> = { "a.b": "text", n: 3, "nodes.check-git.status": "success", empty: "" };
const scope: Scope = {
  lookUp: (path) => VALUES[path.join(".")],
  changed: async (globs) => globs.includes("src/**"),
};
const worth = (text: string): Promise<Value> => evaluate(parseExpression(text), scope);

describe("an expression", () => {
  test.each<[string, Value]>([
    ["a.b == 'text'", true],
    ['a.b != "text"', false],
    ["a['b']", "text"],
    ["nodes.check-git.status == 'success'", true],
    ["n > 2 && n <= 3", true],
    ["n < 3 || n >= 4", false],
    ["!(n == 3) || true", true],
    ["!empty", true],
    ["missing == null", true],
    ["missing || 'else'", "else"],
    ["'3' == n", false],
    ["changed('src/**')", true],
    ["changed('docs/**')", false],
    ["contains(a.b, 'ex') && startsWith(a.b, 'te') && endsWith(a.b, 'xt')", true],
    ["'it\\'s'", "it's"],
    ["true == false == false", true],
  ])("%s", async (text, value) => {
    expect(await worth(text)).toBe(value);
  });

  test.each([
    "",
    "a ==",
    "a b",
    "(a",
    "a.",
    "a[b]",
    "f(",
    "'open",
    "a; b",
    "`x`",
    "1 +",
    `${"(".repeat(200)}a${")".repeat(200)}`,
    "a".repeat(5_000),
  ])("%j is none", (text) => {
    expect(() => parseExpression(text)).toThrow(ExpressionError);
  });

  test("compares only numbers by size", async () => {
    await expect(worth("a.b > 2")).rejects.toThrow('">" compares numbers, not "text" and 2');
  });

  test("whatever stands there, it is read or refused, never run and never endless", () => {
    const pieces = fc.constantFrom(
      "a",
      ".",
      "(",
      ")",
      "!",
      "&&",
      "==",
      "'x'",
      "1",
      ",",
      "[",
      "]",
      "constructor",
      "__proto__",
      " ",
    );
    fc.assert(
      fc.property(
        fc.array(pieces, { maxLength: 30 }).map((parts) => parts.join("")),
        (text) => {
          try {
            parseExpression(text);
          } catch (error) {
            if (!(error instanceof ExpressionError)) throw error;
          }
        },
      ),
    );
  });
});

test("a template is filled in once: what a value holds is not looked at again", async () => {
  const own: Scope = { ...scope, lookUp: () => "{{ n }}" };
  expect(await renderTemplate("<{{ x }}> {{ '}}' }}", own)).toBe("<{{ n }}> }}");
  expect(await renderTemplate("{{ n }}{{ a.b }}", scope)).toBe("3text");
  await expect(renderTemplate("{{ missing }}", scope)).rejects.toThrow("{{ missing }} has no value in this run");
});

describe("a glob", () => {
  test.each<[string, string, boolean]>([
    ["test/**", "test/a/b.ts", true],
    ["test/**", "tests/a.ts", false],
    ["**/*.test.ts", "a.test.ts", true],
    ["**/*.test.ts", "x/y/a.test.ts", true],
    ["*.ts", "x/a.ts", false],
    [".github", ".github/workflows/ci.yml", true],
    ["docs/", "docs/a/b", true],
    ["a?c.{js,ts}", "abc.ts", true],
    ["a?c.{js,ts}", "abc.tsx", false],
    ["a+(b)", "a+(b)", true],
    ["./a", "a", true],
    ["**", "any/thing", true],
  ])("%s and %s: %s", (glob, path, isMatch) => {
    expect(createPathMatcher([glob])(path)).toBe(isMatch);
  });
});
