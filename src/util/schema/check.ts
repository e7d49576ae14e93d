import { SandboxError } from "../../../contracts/errors.js";
import { nearestName } from "../nearest.js";
import { describe, invalidArgument } from "./invalid-argument.js";
import { type JsonSchema, type Keyword, OWN, type Schema } from "./schema-type.js";
import { type FaultHandler, type Position, walk } from "./walk.js";

/** Takes a value for what it should be, or throws. Ours are made of a schema; those of other libraries fit as well. */
export interface Parser<T> {
  parse(value: unknown): T;
}

/** Throws the first fault of a value as a `SandboxError` that names the option and shows the value; `undefined` counts as absent. */
export function check<T>(value: unknown, schema: Schema<T>, name: string): asserts value is T {
  walk(value, schema, { key: name }, throwing);
}

/** Makes the parser of options that are known by a name, such as those of a backend. */
export function parser<T>(name: string, schema: Schema<T>): Parser<T> {
  return {
    parse(value) {
      check(value, schema, name);
      return value;
    },
  };
}

const throwing: FaultHandler = {
  wrong(value, schema, keyword, at) {
    const shown = keyword === "maxProperties" ? Object.keys(value as object).length : value;
    throw invalidArgument(nameOf(at), expected(schema, keyword), shown);
  },
  unknown(key, schema, at) {
    const name = nameOf(at);
    const { elsewhere = {}, also = [] } = schema[OWN] ?? {};
    const known = [...also, ...Object.keys(schema.properties ?? {})];
    const nearest = nearestName(key, known);
    const hint = nearest === undefined ? `known options: ${known.join(", ")}` : `did you mean "${nearest}"?`;
    throw new SandboxError(
      "invalid_argument",
      `Unknown option ${describe(key)}${at.above === undefined && name === "options" ? "" : ` in ${name}`}`,
      { hint: Object.hasOwn(elsewhere, key) ? `it is ${elsewhere[key]}` : hint },
    );
  },
  missing(key, value, schema, at) {
    const { incomplete, absent } = schema[OWN] ?? {};
    if (incomplete !== undefined) throw invalidArgument(nameOf(at), incomplete, value);
    const place = { above: at, key };
    const words = absent?.[key];
    if (words === undefined) walk(undefined, schema.properties?.[key] ?? {}, place, throwing);
    throw invalidArgument(nameOf(place), words ?? "a value", undefined);
  },
  unchosen(key, value, schema, at) {
    const words = schema.oneOf?.flatMap(({ properties }) => properties?.[key]?.enum ?? []) ?? [];
    const chosen = (value as Readonly<Record<string, unknown>>)[key];
    throw invalidArgument(nameOf({ above: at, key }), quoted(words), chosen);
  },
  name: (key, names, at) => walk(key, names, at, throwing),
  run(rule, value, at) {
    rule(value, nameOf(at));
    return true;
  },
};

/** What is in these is known by its own name. */
const ROOTS: readonly (string | number)[] = ["options", "the file"];

function nameOf({ above, key }: Position): string {
  if (above === undefined) return String(key);
  if (typeof key === "number") return `${nameOf(above)}[${key}]`;
  return above.above === undefined && ROOTS.includes(above.key) ? key : `${nameOf(above)}.${key}`;
}

function expected(schema: JsonSchema, keyword: Keyword): string {
  const words = schema[OWN]?.expected;
  const own = typeof words === "string" ? words : words?.[keyword];
  if (own !== undefined) return own;
  if (schema.enum !== undefined) return quoted(schema.enum);
  switch (schema.type) {
    case "integer":
      return `a whole number from ${schema.minimum} to ${schema.maximum}`;
    case "boolean":
      return "true or false";
    case "array":
      return "an array";
    case "string":
      return (schema.minLength ?? 0) > 0 ? "a non-empty string" : "a string";
    default:
      return "an object";
  }
}

function quoted(words: readonly unknown[]): string {
  return words.map((word) => `"${String(word)}"`).join(" or ");
}
