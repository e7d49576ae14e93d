/** Throws a `SandboxError` when a value is not what the option of that name may be. */
export type Check<T = unknown> = (value: T, name: string) => void;

/** The types that JSON Schema knows. */
export type JsonType = "object" | "array" | "string" | "number" | "integer" | "boolean" | "null";

/** The part of JSON Schema 2020-12 that our schemas use. */
export interface JsonSchema {
  readonly $schema?: string;
  readonly $id?: string;
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, JsonSchema>>;
  readonly title?: string;
  readonly description?: string;
  readonly type?: JsonType | readonly JsonType[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | JsonSchema;
  readonly propertyNames?: JsonSchema;
  readonly maxProperties?: number;
  readonly items?: JsonSchema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  /** The property by which a branch of `oneOf` is chosen; each branch lists its values. */
  readonly discriminator?: { readonly propertyName: string };
  readonly [OWN]?: Own;
}

/** A keyword that a value by itself can break. */
export type Keyword =
  | "const"
  | "enum"
  | "type"
  | "minLength"
  | "maxLength"
  | "pattern"
  | "minimum"
  | "exclusiveMinimum"
  | "maximum"
  | "minItems"
  | "maxItems"
  | "maxProperties"
  | "oneOf";

/** The key of what JSON Schema cannot say. A symbol: `JSON.stringify` leaves it out. */
export const OWN: unique symbol = Symbol("own");

/** What JSON Schema cannot say. */
export interface Own {
  /** What an error says is expected, for every keyword or for some. */
  readonly expected?: string | Partial<Readonly<Record<Keyword, string>>>;
  /** Takes the place of the keywords, which are then only printed. */
  readonly check?: Check;
  /** Runs after everything else has been found in order. */
  readonly rule?: Check;
  /** What is expected of the whole object when a required property is absent. Default: the property is what is wrong. */
  readonly incomplete?: string;
  /** What is expected of a required property that is absent, where it is not what its schema says. */
  readonly absent?: Readonly<Record<string, string>>;
  /** Names that a user may look for here, and what they have to use instead. */
  readonly elsewhere?: Readonly<Record<string, string>>;
  /** What `$ref` stands for. */
  readonly target?: () => JsonSchema;
}

declare const TYPE: unique symbol;

/** Describes the values of the type `T`: JSON Schema, and what that cannot say. Only the functions of this room make one. */
export interface Schema<T> extends JsonSchema {
  readonly [TYPE]: (value: T) => T;
}

/** Makes a schema of keywords. Whether they describe the values of `T` is the caller's word. */
export function schemaOf<T>(keywords: JsonSchema, own?: Own): Schema<T> {
  return (own === undefined ? keywords : { ...keywords, [OWN]: own }) as Schema<T>;
}
