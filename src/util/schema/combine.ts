import { type Check, type JsonSchema, OWN, type Own, type Schema, schemaOf } from "./schema-type.js";

/** A property that must be there. */
export interface Needed<T> {
  readonly needed: Schema<T>;
  readonly absent?: string | undefined;
}

/** The schemas of all properties of `T` by their names, `required(…)` around those that must be there. */
export type Fields<T> = {
  readonly [K in keyof T]-?: Partial<Pick<T, K>> extends Pick<T, K> ? Schema<Exclude<T[K], undefined>> : Needed<T[K]>;
};

/** Says that a property must be there, and what an error expects where it is not. Default: what its schema says. */
export function required<T>(needed: Schema<T>, absent?: string): Needed<T> {
  return { needed, absent };
}

/** An object with these properties and no others. Takes exactly the keys of `T`, or does not compile. */
export function object<T extends object>(fields: NoInfer<Fields<T>>, more: JsonSchema = {}, own: Own = {}): Schema<T> {
  const properties: Record<string, JsonSchema> = {};
  const absent: Record<string, string> = {};
  const needs: string[] = [];
  for (const [key, field] of Object.entries(fields as Readonly<Record<string, JsonSchema | Needed<unknown>>>)) {
    const isNeeded = "needed" in field;
    properties[key] = isNeeded ? field.needed : field;
    if (isNeeded) needs.push(key);
    if (isNeeded && field.absent !== undefined) absent[key] = field.absent;
  }
  const some = needs.length > 0 ? { required: needs } : {};
  return schemaOf({ type: "object", additionalProperties: false, ...some, ...more, properties }, { ...own, absent });
}

/** A list of such values. */
export function list<T extends readonly unknown[]>(
  items: Schema<NoInfer<T>[number]>,
  more: JsonSchema = {},
  expected: Own["expected"] = {},
): Schema<T> {
  return schemaOf({ type: "array", items, ...more }, { expected });
}

/** An object with any keys, or with such as `names` describes, and such values. */
export function record<T>(
  values: Schema<T>,
  names?: Schema<string>,
  more: JsonSchema = {},
  expected: Own["expected"] = {},
): Schema<Readonly<Record<string, T>>> {
  return schemaOf(
    { type: "object", ...(names !== undefined && { propertyNames: names }), ...more, additionalProperties: values },
    { expected },
  );
}

/** A value of one of these types. It is checked against the first schema whose type it has. */
export function union<T extends readonly unknown[]>(
  expected: string,
  ...oneOf: { readonly [I in keyof T]: Schema<T[I]> }
): Schema<T[number]> {
  return schemaOf({ oneOf }, { expected });
}

/** An object whose kind is the value of one property, which is a `oneOf` in every branch. */
export function choice<T extends readonly object[]>(
  propertyName: string,
  expected: string,
  ...oneOf: { readonly [I in keyof T]: Schema<T[I]> }
): Schema<T[number]> {
  return schemaOf({ discriminator: { propertyName }, oneOf }, { expected });
}

/** A schema that is printed as a named definition. It may contain itself. */
export function reference<T>(name: string, target: () => Schema<T>): Schema<T> {
  return schemaOf({ $ref: `#/$defs/${name}` }, { target });
}

/** The same schema with a rule that only code can express. It runs when everything else is fine. */
export function and<T>(schema: Schema<T>, rule: Check<NoInfer<T>>, more: JsonSchema = {}): Schema<T> {
  const { rule: first } = schema[OWN] ?? {};
  const both: Check<T> = (value, name) => {
    first?.(value, name);
    rule(value, name);
  };
  return schemaOf({ ...schema, ...more }, { ...schema[OWN], rule: both as Check });
}

/** The same schema with more keywords, such as a description or a default. */
export function noted<T>(schema: Schema<T>, more: JsonSchema): Schema<T> {
  return { ...schema, ...more };
}
