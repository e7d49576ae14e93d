import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SandboxError } from "../../contracts/errors.js";
import {
  and,
  anything,
  check,
  choice,
  custom,
  env,
  findFaults,
  flag,
  hostName,
  invalidArgument,
  type JsonSchema,
  list,
  literal,
  matching,
  noted,
  object,
  oneOf,
  parser,
  path,
  port,
  record,
  reference,
  required,
  type Schema,
  string,
  text,
  toJsonSchema,
  union,
  whole,
} from "../../src/util/schema.js";
import { schemaFault } from "../support/json-schema.js";

interface Box {
  name: string;
  size?: number;
  kind?: "round" | "square";
  tags?: readonly string[];
}

const box: Schema<Box> = object({
  name: required(text),
  size: whole(1, 9),
  kind: oneOf("round", "square"),
  tags: list(text),
});

describe("the compiler refuses a schema", () => {
  test("that is not one of its type", () => {
    const size = whole(1, 9);
    const kind = oneOf("round", "square");
    const tags: Schema<readonly string[]> = list(text);
    const wrong = {
      // @ts-expect-error: tags is missing
      missing: object<Box>({ name: required(text), size, kind }),
      // @ts-expect-error: colour is no key of a box
      extra: object<Box>({ name: required(text), size, kind, tags, colour: text }),
      // @ts-expect-error: a size is a number
      other: object<Box>({ name: required(text), size: text, kind, tags }),
      // @ts-expect-error: a name must be there
      optional: object<Box>({ name: text, size, kind, tags }),
      // @ts-expect-error: a size need not be there
      needed: object<Box>({ name: required(text), size: required(size), kind, tags }),
      // @ts-expect-error: a box may be square
      narrow: object<Box>({ name: required(text), size, kind: oneOf("round"), tags }),
      // @ts-expect-error: no box is oval
      wide: object<Box>({ name: required(text), size, kind: oneOf("round", "square", "oval"), tags }),
      // @ts-expect-error: tags are texts
      items: object<Box>({ name: required(text), size, kind, tags: list(size) }),
    };
    // @ts-expect-error: keywords alone have no type
    const plain: Schema<string> = { type: "string" };
    expect([...Object.values(wrong), plain]).toHaveLength(9);
  });
});

function refusal(work: () => void): SandboxError {
  try {
    work();
  } catch (error) {
    expect(error).toBeInstanceOf(SandboxError);
    return error as SandboxError;
  }
  throw new Error("expected a refusal");
}

const pair: Schema<{ cols: number; rows: number }> = object(
  { cols: required(port), rows: required(port) },
  {},
  { incomplete: "both cols and rows" },
);
const command: Schema<string | readonly string[]> = union(
  "a string or an array",
  text,
  list<readonly string[]>(text, { minItems: 1 }, { minItems: "a program" }),
);
const round: Schema<{ kind: "round"; radius: number }> = object({
  kind: required(oneOf("round")),
  radius: required(port, "a radius"),
});
const square: Schema<{ kind: "square"; side?: number }> = object({ kind: required(oneOf("square")), side: port });
const shape = choice("kind", "an object with a kind", round, square);
const words: Schema<Readonly<Record<string, string>>> = record(
  text,
  hostName,
  { maxProperties: 2 },
  { maxProperties: "at most 2 words" },
);
const even = and(port, (value, name) => {
  if (value % 2 === 1) throw invalidArgument(name, "an even number", value);
});

const REFUSED: readonly [what: string, schema: JsonSchema, value: unknown, message: string, hint?: string][] = [
  ["no object", box, 5, "Invalid options: expected an object, got 5"],
  ["a list", box, [], "Invalid options: expected an object, got []"],
  ["a key that is close", box, { name: "a", siez: 1 }, 'Unknown option "siez"', 'did you mean "size"?'],
  ["a key of nothing", box, { zzzzzz: 1 }, 'Unknown option "zzzzzz"', "known options: name, size, kind, tags"],
  [
    "a key of every object",
    box,
    { constructor: 1 },
    'Unknown option "constructor"',
    "known options: name, size, kind, tags",
  ],
  ["what is absent", box, {}, "Invalid name: expected a non-empty string, got undefined"],
  ["what is undefined", box, { name: undefined }, "Invalid name: expected a non-empty string, got undefined"],
  ["an empty text", box, { name: "" }, 'Invalid name: expected a non-empty string, got ""'],
  ["a NUL", box, { name: "a\0" }, 'Invalid name: expected a string without NUL, got "a\\u0000"'],
  ["a number out of range", box, { name: "a", size: 10 }, "Invalid size: expected a whole number from 1 to 9, got 10"],
  ["a fraction", box, { name: "a", size: 1.5 }, "Invalid size: expected a whole number from 1 to 9, got 1.5"],
  ["another word", box, { name: "a", kind: "oval" }, 'Invalid kind: expected "round" or "square", got "oval"'],
  ["an item", box, { name: "a", tags: ["b", 1] }, "Invalid tags[1]: expected a non-empty string, got 1"],
  ["half of a pair", pair, { cols: 1 }, 'Invalid options: expected both cols and rows, got {"cols":1}'],
  ["neither kind", command, 5, "Invalid options: expected a string or an array, got 5"],
  ["the first kind", command, "", 'Invalid options: expected a non-empty string, got ""'],
  ["the second kind", command, [], "Invalid options: expected a program, got []"],
  ["nothing to choose by", shape, 5, "Invalid options: expected an object with a kind, got 5"],
  ["no choice", shape, {}, 'Invalid kind: expected "round" or "square", got undefined'],
  ["another choice", shape, { kind: "x" }, 'Invalid kind: expected "round" or "square", got "x"'],
  ["a choice that is not whole", shape, { kind: "round" }, "Invalid radius: expected a radius, got undefined"],
  [
    "a key of the other choice",
    shape,
    { kind: "square", radius: 1 },
    'Unknown option "radius"',
    "known options: kind, side",
  ],
  ["a name", words, { A: "b" }, 'Invalid options: expected a host name, got "A"'],
  ["too many", words, { a: "b", c: "d", e: "f" }, "Invalid options: expected at most 2 words, got 3"],
  ["a rule", even, 3, "Invalid options: expected an even number, got 3"],
  ["the first of two rules", and(even, () => undefined), 3, "Invalid options: expected an even number, got 3"],
  [
    "a long list",
    list<string[]>(text, { maxItems: 1 }, "one at most"),
    ["a", "b"],
    'Invalid options: expected one at most, got ["a","b"]',
  ],
  ["another value", literal(true, "true, or nothing"), false, "Invalid options: expected true, or nothing, got false"],
  ["a variable", env, { "1A": "x" }, 'Invalid env key "1A" — must match [A-Za-z_][A-Za-z0-9_]*'],
];

describe("the first fault is thrown", () => {
  test.each(REFUSED)("%s", (_what, schema, value, message, hint) => {
    expect(refusal(() => check(value, schema as Schema<unknown>, "options"))).toMatchObject({
      code: "invalid_argument",
      message,
    });
    expect(refusal(() => check(value, schema as Schema<unknown>, "options")).hint).toBe(hint);
  });

  test("with the whole way to it, below the name that it is known by", () => {
    const boxes = object<{ boxes: readonly Box[] }>({ boxes: required(list(box)) });
    const value = { boxes: [{ name: "a" }, { name: "b", tags: [""] }] };
    expect(refusal(() => check(value, boxes, "options")).message).toContain("Invalid boxes[1].tags[0]:");
    expect(refusal(() => check(value, boxes, "docker")).message).toContain("Invalid docker.boxes[1].tags[0]:");
    expect(refusal(() => check({ boxes: [{ siez: 1 }] }, boxes, "docker")).message).toBe(
      'Unknown option "siez" in docker.boxes[0]',
    );
    const inner = object<{ options?: Box }>({ options: box });
    expect(refusal(() => check({ options: { name: 5 } }, inner, "docker")).message).toContain("docker.options.name:");
    expect(refusal(() => check({ options: { a: 5 } }, inner, "options")).message).toBe('Unknown option "a" in options');
  });

  test("a name that users look for in the wrong place has its place as the hint", () => {
    const schema = object<{ user?: string }>({ user: text }, {}, { elsewhere: { image: "the option image" } });
    expect(refusal(() => check({ image: "x" }, schema, "docker")).hint).toBe("it is the option image");
  });

  test("a rule sees only what is in order otherwise", () => {
    const seen: unknown[] = [];
    const schema = and(list<readonly string[]>(text), (value) => void seen.push(value));
    expect(() => check([""], schema, "x")).toThrow();
    check(["a"], schema, "x");
    expect(seen).toEqual([["a"]]);
  });

  test("a parser gives back what it has checked", () => {
    const value = { name: "a" };
    expect(parser("box", box).parse(value)).toBe(value);
    expect(() => parser("box", box).parse({})).toThrow("Invalid box.name");
  });
});

describe("all faults are collected", () => {
  test("with their places", () => {
    const value = { name: 5, siez: 1, tags: ["a", "", 7], kind: "rund" };
    expect(findFaults(value, box)).toEqual([
      { place: ["name"], message: "must be a text, not 5" },
      { place: ["siez"], message: "unknown field; did you mean size?", isKey: true },
      { place: ["tags", 1], message: "must not be empty" },
      { place: ["tags", 2], message: "must be a text, not 7" },
      { place: ["kind"], message: '"rund" is not one of round, square; did you mean round?' },
    ]);
    expect(findFaults({}, box)).toEqual([{ place: [], message: "has no name" }]);
    expect(findFaults({ A: "b" }, words)).toMatchObject([{ place: ["A"], isKey: true }]);
    expect(findFaults({ kind: "x" }, shape)).toMatchObject([
      { place: ["kind"], message: expect.stringContaining("unknown kind") },
    ]);
  });

  test("also those that only code can find", () => {
    expect(findFaults(3, even)).toEqual([{ place: [], message: expect.stringContaining("expected an even number") }]);
    expect(findFaults({ a: "" }, record(path))).toMatchObject([{ place: ["a"] }]);
    const broken = custom<string>(() => {
      throw new TypeError("a mistake in the check");
    });
    expect(() => findFaults("x", broken)).toThrow(TypeError);
  });
});

interface Tree {
  leaf: string;
  branches?: readonly Tree[];
}

describe("a schema is printed", () => {
  test("as JSON Schema and nothing else", () => {
    expect(toJsonSchema(noted(box, { title: "A box" }))).toEqual({
      title: "A box",
      type: "object",
      additionalProperties: false,
      required: ["name"],
      properties: {
        name: { type: "string", minLength: 1 },
        size: { type: "integer", minimum: 1, maximum: 9 },
        kind: { enum: ["round", "square"] },
        tags: { type: "array", items: { type: "string", minLength: 1 } },
      },
    });
    expect(toJsonSchema(anything)).toEqual({});
  });

  test("with what it refers to, also to itself", () => {
    const node: Schema<Tree> = reference("tree", () => tree);
    const tree = object<Tree>({ leaf: required(text), branches: list(node) });
    const printed = toJsonSchema(node);
    expect(printed.$ref).toBe("#/$defs/tree");
    expect(printed.$defs?.["tree"]?.properties?.["branches"]).toEqual({
      type: "array",
      items: { $ref: "#/$defs/tree" },
    });
    const around = reference("around", () => object<{ tree?: Tree }>({ tree: node }));
    expect(Object.keys(toJsonSchema(around).$defs ?? {})).toEqual(["around", "tree"]);
    const value = { leaf: "a", branches: [{ leaf: "b", branches: [{ leaf: 5 }] }] };
    expect(findFaults(value, node)).toMatchObject([{ place: ["branches", 0, "branches", 0, "leaf"] }]);
  });
});

/** Schemas of every kind, without what only code can say. */
const schemas = fc.letrec<{ any: Schema<unknown>; leaf: Schema<unknown> }>((tie) => ({
  any: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    tie("leaf"),
    fc
      .tuple(tie("any"), fc.nat(2), fc.integer({ min: 2, max: 4 }))
      .map(([item, minItems, maxItems]) => list<unknown[]>(item, { minItems, maxItems })),
    tie("any").map((value) => record(value, matching(/^[a-c]$/, "a letter"), { maxProperties: 2 })),
    fc
      .tuple(tie("any"), tie("any"), fc.boolean())
      .map(([a, b, isNeeded]) =>
        isNeeded
          ? object<{ a: unknown; b?: unknown }>({ a: required(a), b })
          : object<{ a?: unknown; b?: unknown }>({ a, b }),
      ),
    fc
      .tuple(tie("any"), tie("any"))
      .map(([first, second]) =>
        choice(
          "kind",
          "an object",
          object<{ kind: "x"; a: unknown }>({ kind: required(oneOf("x")), a: required(first) }),
          object<{ kind: "y" | "z"; b?: unknown }>({ kind: required(oneOf("y", "z")), b: second }),
        ),
      ),
    tie("any").map((item) => union("a text or a list", string({ minLength: 1 }), list<unknown[]>(item))),
  ) as fc.Arbitrary<Schema<unknown>>,
  leaf: fc.constantFrom<JsonSchema[]>(
    string(),
    string({ minLength: 1, maxLength: 3 }),
    matching(/^[a-c]+$/, "letters"),
    whole(-1, 5),
    flag,
    oneOf("a", "b"),
    literal(1, "one"),
  ) as fc.Arbitrary<Schema<unknown>>,
}));

/** Values that often fit such schemas. */
const values = fc.letrec<{ any: unknown }>((tie) => ({
  any: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom<unknown[]>("", "a", "b", "abc", "abcd", "x", 0, 1, 5, 6, -1, 1.5, true, false, null),
    fc.array(tie("any"), { maxLength: 5 }),
    fc.dictionary(fc.constantFrom("a", "b", "c", "d", "__proto__", "constructor"), tie("any"), { maxKeys: 3 }),
    fc.record(
      { kind: fc.constantFrom<unknown[]>("x", "y", "z", "w", 1), a: tie("any"), b: tie("any") },
      { requiredKeys: [] },
    ),
  ),
}));

test("what is thrown, what is collected and what the printed schema refuses are the same", () => {
  let refused = 0;
  let taken = 0;
  fc.assert(
    fc.property(schemas.any, values.any, (schema, value) => {
      const faults = findFaults(value, schema);
      if (faults.length === 0) {
        taken++;
        expect(() => check(value, schema, "value")).not.toThrow();
      } else {
        refused++;
        expect(refusal(() => check(value, schema, "value")).code).toBe("invalid_argument");
      }
      const fault = schemaFault(value, { ...toJsonSchema(schema) });
      expect(fault === undefined).toBe(faults.length === 0);
    }),
    { numRuns: 3000 },
  );
  expect(Math.min(refused, taken)).toBeGreaterThan(100);
});
