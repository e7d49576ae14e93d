type Schema = Readonly<Record<string, unknown>>;

/** Checks a value against the part of JSON Schema that our own schemas use; gives the first fault. A keyword that is not known throws. */
export function schemaFault(value: unknown, schema: Schema, root: Schema = schema, at = "$"): string | undefined {
  for (const [keyword, rule] of Object.entries(schema)) {
    const check = KEYWORDS[keyword];
    if (check === undefined) throw new Error(`the keyword ${keyword} is not known here`);
    const fault = check(value, rule, schema, root, at);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

type Keyword = (value: unknown, rule: unknown, schema: Schema, root: Schema, at: string) => string | undefined;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const unless = (holds: boolean, fault: string): string | undefined => (holds ? undefined : fault);

const TYPES: Readonly<Record<string, (value: unknown) => boolean>> = {
  object: isObject,
  array: Array.isArray,
  string: (value) => typeof value === "string",
  boolean: (value) => typeof value === "boolean",
  number: (value) => typeof value === "number",
  integer: Number.isInteger,
};

const ignored: Keyword = () => undefined;

const KEYWORDS: Readonly<Record<string, Keyword>> = {
  $schema: ignored,
  $defs: ignored,
  title: ignored,
  description: ignored,
  default: ignored,
  /** Only says how to choose: `oneOf` refuses all that it would. */
  discriminator: ignored,
  enum: (value, rule, _, __, at) => unless((rule as unknown[]).includes(value), `${at} is no word of the list`),
  type: (value, rule, _, __, at) =>
    unless(
      [rule as string | string[]].flat().some((type) => TYPES[type]?.(value) === true),
      `${at} is no ${String(rule)}`,
    ),
  const: (value, rule, _, __, at) => unless(value === rule, `${at} is not ${JSON.stringify(rule)}`),
  pattern: (value, rule, _, __, at) =>
    unless(typeof value !== "string" || new RegExp(rule as string).test(value), `${at} does not match`),
  minLength: (value, rule, _, __, at) =>
    unless(typeof value !== "string" || value.length >= Number(rule), `${at} is too short`),
  maxLength: (value, rule, _, __, at) =>
    unless(typeof value !== "string" || value.length <= Number(rule), `${at} is too long`),
  minimum: (value, rule, _, __, at) => unless(typeof value !== "number" || value >= Number(rule), `${at} is too small`),
  maximum: (value, rule, _, __, at) => unless(Number(value) <= Number(rule), `${at} is too large`),
  exclusiveMinimum: (value, rule, _, __, at) => unless(Number(value) > Number(rule), `${at} is too small`),
  minItems: (value, rule, _, __, at) =>
    unless(!Array.isArray(value) || value.length >= Number(rule), `${at} has too few`),
  maxItems: (value, rule, _, __, at) =>
    unless(!Array.isArray(value) || value.length <= Number(rule), `${at} has too many`),
  maxProperties: (value, rule, _, __, at) =>
    unless(!isObject(value) || Object.keys(value).length <= Number(rule), `${at} has too many`),
  required: (value, rule, _, __, at) =>
    isObject(value)
      ? (rule as string[]).map((key) => unless(Object.hasOwn(value, key), `${at}.${key} is missing`)).find(Boolean)
      : undefined,
  $ref: (value, rule, _, root, at) => {
    const path = String(rule).replace(/^#\//, "").split("/");
    const found = path.reduce<unknown>((place, key) => (place as Schema)[key], root);
    return schemaFault(value, found as Schema, root, at);
  },
  items: (value, rule, _, root, at) =>
    Array.isArray(value)
      ? value.map((item, index) => schemaFault(item, rule as Schema, root, `${at}[${index}]`)).find(Boolean)
      : undefined,
  properties: (value, rule, _, root, at) =>
    isObject(value)
      ? Object.entries(rule as Record<string, Schema>)
          .map(([key, schema]) =>
            Object.hasOwn(value, key) ? schemaFault(value[key], schema, root, `${at}.${key}`) : undefined,
          )
          .find(Boolean)
      : undefined,
  additionalProperties: (value, rule, schema, root, at) => {
    if (!isObject(value)) return undefined;
    const known = Object.keys((schema["properties"] as object | undefined) ?? {});
    const others = Object.keys(value).filter((key) => !known.includes(key));
    if (rule === false) return unless(others.length === 0, `${at} has the unknown ${others.join()}`);
    return others.map((key) => schemaFault(value[key], rule as Schema, root, `${at}.${key}`)).find(Boolean);
  },
  propertyNames: (value, rule, _, root, at) =>
    isObject(value)
      ? Object.keys(value)
          .map((key) => schemaFault(key, rule as Schema, root, `the name ${at}.${key}`))
          .find(Boolean)
      : undefined,
  anyOf: (value, rule, _, root, at) =>
    unless(
      (rule as Schema[]).some((schema) => schemaFault(value, schema, root, at) === undefined),
      `${at} is none of them`,
    ),
  oneOf: (value, rule, _, root, at) =>
    unless(
      (rule as Schema[]).filter((schema) => schemaFault(value, schema, root, at) === undefined).length === 1,
      `${at} is not just one of them`,
    ),
};
