import { SandboxError } from "../../../contracts/errors.js";
import { nearestName } from "../nearest.js";
import { type JsonSchema, type JsonType, type Keyword, OWN } from "./schema-type.js";
import { brokenKeyword, type FaultHandler, type Position, walk } from "./walk.js";

/** Where something is in a document. */
export type FieldPath = readonly (string | number)[];

/** Something that is wrong in a document. */
export interface Fault {
  readonly place: FieldPath;
  readonly message: string;
  /** True when the key is meant, not its value. */
  readonly isKey?: boolean;
}

/** Checks a document against a schema and returns all faults. */
export function findFaults(value: unknown, schema: JsonSchema): Fault[] {
  const faults: Fault[] = [];
  walk(value, schema, { key: "" }, collecting(faults));
  return faults;
}

function collecting(faults: Fault[]): FaultHandler {
  const add = (message: string, at: Position): void => void faults.push({ place: placeOf(at), message });
  const addKey = (message: string, key: string, at: Position): void =>
    void faults.push({ place: [...placeOf(at), key], message, isKey: true });
  return {
    wrong: (value, schema, keyword, at) => add(MESSAGES[keyword](value as never, schema), at),
    unknown: (key, { properties = {} }, at) => addKey(unknownField(key, Object.keys(properties)), key, at),
    missing: (key, _value, _schema, at) => add(`has no ${key}`, at),
    unchosen(key, value, { oneOf = [] }, at) {
      const words = oneOf.flatMap(({ properties }) => properties?.[key]?.enum ?? []);
      if (!(key in value)) return add(`has no ${key}; it is one of ${words.join(", ")}`, at);
      const chosen = (value as Readonly<Record<string, unknown>>)[key];
      add(`unknown ${key}: ${wrongWord(chosen, words)}`, { above: at, key });
    },
    name(key, names, at) {
      if (brokenKeyword(key, names) === undefined) return true;
      addKey(`the name ${formOf(key, names)}`, key, at);
      return false;
    },
    run(check, value, at) {
      try {
        check(value, "value");
        return true;
      } catch (error) {
        if (!(error instanceof SandboxError)) throw error;
        add(error.message, at);
        return false;
      }
    },
  };
}

function placeOf({ above, key }: Position): FieldPath {
  return above === undefined ? [] : [...placeOf(above), key];
}

function formOf(value: unknown, { pattern, description }: JsonSchema): string {
  return `${show(value)} is not of the form ${pattern}${description === undefined ? "" : ` (${description})`}`;
}

const MESSAGES: Readonly<Record<Keyword, (value: never, schema: JsonSchema) => string>> = {
  const: (value, schema) => `must be ${show(schema.const)}, not ${show(value)}`,
  enum: (value, schema) => wrongWord(value, schema.enum ?? []),
  type: (value, { type = [] }) =>
    `must be ${[type]
      .flat()
      .map((each) => WORDS[each])
      .join(" or ")}, not ${show(value)}`,
  minLength: () => "must not be empty",
  maxLength: (value: string, { maxLength }) => `must have at most ${maxLength} characters, not ${value.length}`,
  pattern: formOf,
  minimum: (value: number, { minimum }) => `must be at least ${minimum}, not ${value}`,
  exclusiveMinimum: (value: number, { exclusiveMinimum }) => `must be above ${exclusiveMinimum}, not ${value}`,
  maximum: (value: number, { maximum }) => `must be at most ${maximum}, not ${value}`,
  minItems: () => "must not be empty",
  maxItems: (value: unknown[], { maxItems }) => `must have at most ${maxItems} entries, not ${value.length}`,
  maxProperties: (value: object, { maxProperties }) =>
    `must have at most ${maxProperties} fields, not ${Object.keys(value).length}`,
  oneOf: (value, schema) => `must be ${schema.discriminator ? "a mapping" : schema[OWN]?.expected}, not ${show(value)}`,
};

const WORDS: Readonly<Record<JsonType, string>> = {
  object: "a mapping",
  array: "a list",
  string: "a text",
  number: "a number",
  integer: "a whole number",
  boolean: "true or false",
  null: "null",
};

function unknownField(key: string, known: readonly string[]): string {
  const close = nearestName(key, known);
  return `unknown field${close === undefined ? `; there are ${known.join(", ")}` : `; did you mean ${close}?`}`;
}

function wrongWord(value: unknown, words: readonly unknown[]): string {
  const close = typeof value === "string" ? nearestName(value, words.map(String)) : undefined;
  return `${show(value)} is not one of ${words.join(", ")}${close === undefined ? "" : `; did you mean ${close}?`}`;
}

function show(value: unknown): string {
  const text = typeof value === "function" ? "a function" : (JSON.stringify(value) ?? String(value));
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
