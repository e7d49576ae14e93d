import { nearestName } from "../../util/nearest.js";
import type { Schema, SchemaType } from "./schema-type.js";

/** Where in a document something stands. */
export type FieldPath = readonly (string | number)[];

/** Something that is wrong in a document. */
export interface Fault {
  readonly place: FieldPath;
  readonly message: string;
  /** True when the key is meant, not its value. */
  readonly isKey?: boolean;
}

/** Checks a value against a schema and gives all that is wrong. */
export function findFaults(value: unknown, schema: Schema, root: Schema = schema, place: FieldPath = []): Fault[] {
  if (schema.$ref !== undefined) return findFaults(value, definition(schema.$ref, root), root, place);
  if (schema.oneOf !== undefined) return faultsOfChoice(value, schema, root, place);
  const fault = (message: string): Fault[] => [{ place, message }];
  if (schema.const !== undefined && value !== schema.const)
    return fault(`must be ${show(schema.const)}, not ${show(value)}`);
  if (schema.enum !== undefined && !schema.enum.includes(value)) return fault(wrongWord(value, schema.enum));
  const types = schema.type === undefined ? [] : [schema.type].flat();
  if (types.length > 0 && !types.some((type) => isOf(type, value))) {
    return fault(`must be ${types.map((type) => WORDS[type]).join(" or ")}, not ${show(value)}`);
  }
  if (typeof value === "string") return faultsOfText(value, schema).flatMap(fault);
  if (typeof value === "number") return faultsOfNumber(value, schema).flatMap(fault);
  if (Array.isArray(value)) return faultsOfList(value, schema, root, place);
  if (isRecord(value)) return faultsOfRecord(value, schema, root, place);
  return [];
}

const WORDS: Readonly<Record<SchemaType, string>> = {
  object: "a mapping",
  array: "a list",
  string: "a text",
  number: "a number",
  integer: "a whole number",
  boolean: "true or false",
  null: "null",
};

function isOf(type: SchemaType, value: unknown): boolean {
  if (type === "object") return isRecord(value);
  if (type === "array") return Array.isArray(value);
  if (type === "integer") return Number.isSafeInteger(value);
  if (type === "null") return value === null;
  return typeof value === type;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function definition(reference: string, root: Schema): Schema {
  return root.$defs?.[reference.replace("#/$defs/", "")] ?? {};
}

/** Chooses the branch by its discriminator, so that the message is about the one that was meant. */
function faultsOfChoice(
  value: unknown,
  { oneOf = [], discriminator }: Schema,
  root: Schema,
  place: FieldPath,
): Fault[] {
  if (!isRecord(value)) return [{ place, message: `must be a mapping, not ${show(value)}` }];
  const key = discriminator?.propertyName ?? "";
  const words = oneOf.flatMap((branch) => branch.properties?.[key]?.enum ?? []);
  if (!(key in value)) return [{ place, message: `has no ${key}; it is one of ${words.join(", ")}` }];
  const branch = oneOf.find(({ properties }) => properties?.[key]?.enum?.includes(value[key]));
  if (branch === undefined)
    return [{ place: [...place, key], message: `unknown ${key}: ${wrongWord(value[key], words)}` }];
  return findFaults(value, branch, root, place);
}

function faultsOfText(value: string, { pattern, minLength = 0, maxLength, description }: Schema): string[] {
  if (value.length < minLength) return ["must not be empty"];
  if (maxLength !== undefined && value.length > maxLength)
    return [`must have at most ${maxLength} characters, not ${value.length}`];
  if (pattern === undefined || new RegExp(pattern, "u").test(value)) return [];
  return [`${show(value)} is not of the form ${pattern}${description === undefined ? "" : ` (${description})`}`];
}

function faultsOfNumber(value: number, { minimum, exclusiveMinimum, maximum }: Schema): string[] {
  if (minimum !== undefined && value < minimum) return [`must be at least ${minimum}, not ${value}`];
  if (exclusiveMinimum !== undefined && value <= exclusiveMinimum)
    return [`must be above ${exclusiveMinimum}, not ${value}`];
  if (maximum !== undefined && value > maximum) return [`must be at most ${maximum}, not ${value}`];
  return [];
}

function faultsOfList(list: readonly unknown[], schema: Schema, root: Schema, place: FieldPath): Fault[] {
  const { items, minItems = 0, maxItems = Number.POSITIVE_INFINITY } = schema;
  if (list.length < minItems) return [{ place, message: "must not be empty" }];
  if (list.length > maxItems) return [{ place, message: `must have at most ${maxItems} entries, not ${list.length}` }];
  return items === undefined ? [] : list.flatMap((item, at) => findFaults(item, items, root, [...place, at]));
}

function faultsOfRecord(record: Record<string, unknown>, schema: Schema, root: Schema, place: FieldPath): Fault[] {
  const { properties = {}, required = [], additionalProperties, propertyNames } = schema;
  const faults: Fault[] = required
    .filter((key) => record[key] === undefined)
    .map((key) => ({ place, message: `has no ${key}` }));
  for (const [key, value] of Object.entries(record)) {
    const at = [...place, key];
    if (propertyNames?.pattern !== undefined && !new RegExp(propertyNames.pattern, "u").test(key)) {
      faults.push({
        place: at,
        message: `the name ${show(key)} is not of the form ${propertyNames.pattern}`,
        isKey: true,
      });
    } else if (Object.hasOwn(properties, key)) faults.push(...findFaults(value, properties[key] ?? {}, root, at));
    else if (additionalProperties === false)
      faults.push({ place: at, message: unknownField(key, properties), isKey: true });
    else if (typeof additionalProperties === "object")
      faults.push(...findFaults(value, additionalProperties, root, at));
  }
  return faults;
}

function unknownField(key: string, properties: Readonly<Record<string, Schema>>): string {
  const known = Object.keys(properties);
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
