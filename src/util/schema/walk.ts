import { type Check, type JsonSchema, type JsonType, type Keyword, OWN } from "./schema-type.js";

/** Where a value is: its key, and the position of the object or list that contains it. */
export interface Position {
  readonly above?: Position;
  readonly key: string | number;
}

/** What to do about faults: throw the first one, or collect all. */
export interface FaultHandler {
  wrong(value: unknown, schema: JsonSchema, keyword: Keyword, at: Position): void;
  /** An object has a key that its schema does not. */
  unknown(key: string, schema: JsonSchema, at: Position): void;
  /** An object lacks a required key. */
  missing(key: string, value: object, schema: JsonSchema, at: Position): void;
  /** No branch has the value by which one is chosen. */
  unchosen(key: string, value: object, schema: JsonSchema, at: Position): void;
  /** Checks a key against the schema of the keys; returns whether it is fine. */
  name(key: string, names: JsonSchema, at: Position): boolean;
  /** Runs a check that throws; returns whether it did not. */
  run(check: Check, value: unknown, at: Position): boolean;
}

/** Checks a value against a schema and reports every fault to the handler; returns whether there was none. */
export function walk(value: unknown, schema: JsonSchema, at: Position, handler: FaultHandler): boolean {
  const own = schema[OWN];
  if (own === undefined) return follow(value, schema, at, handler);
  const { target, check, rule } = own;
  if (target !== undefined) return walk(value, target(), at, handler);
  const isFine = check === undefined ? follow(value, schema, at, handler) : handler.run(check, value, at);
  return isFine && (rule === undefined || handler.run(rule, value, at));
}

/** Whether a value is an object with keys, and no list. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function follow(value: unknown, schema: JsonSchema, at: Position, handler: FaultHandler): boolean {
  if (schema.oneOf !== undefined) return choose(value, schema, schema.oneOf, at, handler);
  const keyword = brokenKeyword(value, schema);
  if (keyword !== undefined) {
    handler.wrong(value, schema, keyword, at);
    return false;
  }
  if (Array.isArray(value)) return walkItems(value, schema.items, at, handler);
  return isRecord(value) ? walkRecord(value, schema, at, handler) : true;
}

/** Chooses a branch by its discriminator or by the type of the value, so that the fault is about the one that was meant. */
function choose(
  value: unknown,
  schema: JsonSchema,
  branches: readonly JsonSchema[],
  at: Position,
  handler: FaultHandler,
): boolean {
  const key = schema.discriminator?.propertyName;
  const branch = branches.find((each) =>
    key === undefined ? isOfKind(value, each) : isRecord(value) && each.properties?.[key]?.enum?.includes(value[key]),
  );
  if (branch !== undefined) return walk(value, branch, at, handler);
  if (key === undefined || !isRecord(value)) handler.wrong(value, schema, "oneOf", at);
  else handler.unchosen(key, value, schema, at);
  return false;
}

function isOfKind(value: unknown, { type, enum: words }: JsonSchema): boolean {
  return (type === undefined || isOfType(value, type)) && (words === undefined || words.includes(value));
}

function walkItems(
  list: readonly unknown[],
  items: JsonSchema | undefined,
  at: Position,
  handler: FaultHandler,
): boolean {
  if (items === undefined) return true;
  let isFine = true;
  for (let key = 0; key < list.length; key++) isFine = walk(list[key], items, { above: at, key }, handler) && isFine;
  return isFine;
}

function walkRecord(
  value: Readonly<Record<string, unknown>>,
  schema: JsonSchema,
  at: Position,
  handler: FaultHandler,
): boolean {
  const { properties = {}, required = [], additionalProperties, propertyNames } = schema;
  let isFine = true;
  for (const key of Object.keys(value)) {
    const entry = value[key];
    const inner = Object.hasOwn(properties, key) ? properties[key] : additionalProperties;
    if (propertyNames !== undefined && !handler.name(key, propertyNames, at)) isFine = false;
    else if (inner === false) {
      handler.unknown(key, schema, at);
      isFine = false;
    } else if (typeof inner === "object" && entry !== undefined) {
      isFine = walk(entry, inner, { above: at, key }, handler) && isFine;
    }
  }
  for (const key of required) {
    if (value[key] !== undefined) continue;
    handler.missing(key, value, schema, at);
    isFine = false;
  }
  return isFine;
}

/** The first keyword that a value breaks by itself, whatever is in it; undefined when it breaks none. */
export function brokenKeyword(value: unknown, schema: JsonSchema): Keyword | undefined {
  if (schema.const !== undefined && value !== schema.const) return "const";
  if (schema.enum !== undefined && !schema.enum.includes(value)) return "enum";
  if (schema.type !== undefined && !isOfType(value, schema.type)) return "type";
  if (typeof value === "string") return brokenByText(value, schema);
  if (typeof value === "number") return brokenByNumber(value, schema);
  if (Array.isArray(value)) {
    if (value.length < (schema.minItems ?? 0)) return "minItems";
    return value.length > (schema.maxItems ?? Number.POSITIVE_INFINITY) ? "maxItems" : undefined;
  }
  if (schema.maxProperties === undefined || !isRecord(value)) return undefined;
  return Object.keys(value).length > schema.maxProperties ? "maxProperties" : undefined;
}

function isOfType(value: unknown, type: JsonType | readonly JsonType[]): boolean {
  if (typeof type !== "string") return type.some((each) => isOfType(value, each));
  if (type === "object") return isRecord(value);
  if (type === "array") return Array.isArray(value);
  if (type === "integer") return Number.isSafeInteger(value);
  if (type === "null") return value === null;
  return typeof value === type;
}

function brokenByText(value: string, { minLength = 0, maxLength, pattern }: JsonSchema): Keyword | undefined {
  if (value.length < minLength) return "minLength";
  if (maxLength !== undefined && value.length > maxLength) return "maxLength";
  return pattern === undefined || expression(pattern).test(value) ? undefined : "pattern";
}

function brokenByNumber(value: number, { minimum, exclusiveMinimum, maximum }: JsonSchema): Keyword | undefined {
  if (minimum !== undefined && value < minimum) return "minimum";
  if (exclusiveMinimum !== undefined && value <= exclusiveMinimum) return "exclusiveMinimum";
  return maximum !== undefined && value > maximum ? "maximum" : undefined;
}

const expressions = new Map<string, RegExp>();

function expression(pattern: string): RegExp {
  let known = expressions.get(pattern);
  if (known === undefined) {
    known = new RegExp(pattern, "u");
    expressions.set(pattern, known);
  }
  return known;
}
