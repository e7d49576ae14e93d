import { describe, expect, test } from "vitest";
import { BLUEPRINT_SCHEMA } from "../../../src/harness.js";
import { findFaults, type JsonSchema } from "../../../src/util/schema.js";

test("it uses no keyword that nothing checks", () => {
  const checked = new Set([
    ...["$ref", "$defs", "type", "enum", "const", "properties", "required", "additionalProperties", "propertyNames"],
    ...["items", "minItems", "maxItems", "minLength", "maxLength", "pattern", "minimum", "exclusiveMinimum", "maximum"],
    ...["oneOf", "maxProperties", "discriminator", "$schema", "$id", "title", "description", "default"],
  ]);
  const used = new Set<string>();
  const visit = (schema: JsonSchema): void => {
    for (const keyword of Object.keys(schema)) used.add(keyword);
    const below = [schema.properties, schema.$defs].flatMap((map) => Object.values(map ?? {}));
    for (const more of [schema.items, schema.propertyNames, schema.additionalProperties, ...(schema.oneOf ?? [])]) {
      if (typeof more === "object") below.push(more);
    }
    below.forEach(visit);
  };
  visit(BLUEPRINT_SCHEMA);
  expect([...used].filter((keyword) => !checked.has(keyword))).toEqual([]);
});

describe("a value held to a schema", () => {
  const cases: [string, JsonSchema, unknown, string | undefined][] = [
    ["a text that is one", { type: "string" }, "a", undefined],
    ["a number in place of a text", { type: "string" }, 1, "must be a text, not 1"],
    ["a fraction in place of a whole number", { type: "integer" }, 1.5, "must be a whole number, not 1.5"],
    ["null in place of a mapping", { type: "object" }, null, "must be a mapping, not null"],
    ["a list in place of a mapping", { type: "object" }, [], "must be a mapping, not []"],
    ["one of two types", { type: ["string", "integer"] }, 3, undefined],
    ["none of two types", { type: ["string", "integer"] }, true, "must be a text or a whole number, not true"],
    ["an empty text", { type: "string", minLength: 1 }, "", "must not be empty"],
    ["a long text", { type: "string", maxLength: 2 }, "abc", "must have at most 2 characters, not 3"],
    ["a text of another form", { type: "string", pattern: "^a$" }, "b", '"b" is not of the form ^a$'],
    ["another constant", { const: 1 }, 2, "must be 1, not 2"],
    ["a word that is close", { enum: ["copy", "overlay"] }, "overlai", "did you mean overlay?"],
    ["a number that is too small", { minimum: 2 }, 1, "must be at least 2, not 1"],
    ["a number at the border", { exclusiveMinimum: 0 }, 0, "must be above 0, not 0"],
    ["a number that is too large", { maximum: 2 }, 3, "must be at most 2, not 3"],
    ["an empty list", { type: "array", minItems: 1 }, [], "must not be empty"],
    ["a long list", { type: "array", maxItems: 1 }, [1, 2], "must have at most 1 entries, not 2"],
    ["a missing field", { type: "object", required: ["a"] }, {}, "has no a"],
    ["a field of the prototype", { additionalProperties: false, properties: {} }, { constructor: 1 }, "unknown field"],
  ];
  test.each(cases)("%s", (_what, schema, value, message) => {
    const faults = findFaults(value, schema);
    if (message === undefined) expect(faults).toEqual([]);
    else expect(faults.map((fault) => fault.message)).toEqual([expect.stringContaining(message)]);
  });
});
