/** Throws a `SandboxError` when a value is not what the option of that name may be. */
export type Check<T = unknown> = (value: T, name: string) => void;

/** The types that JSON Schema knows. */
export type JsonType = "object" | "array" | "string" | "number" | "integer" | "boolean" | "null";

/** The keywords of JSON Schema 2020-12 that our schemas use. */
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

/** A keyword that a value can break, whatever it contains. */
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
  /** Runs instead of the checks of the keywords, which are then only printed. */
  readonly check?: Check;
  /** Runs when everything else is fine. */
  readonly rule?: Check;
  /** What an error expects of the whole object when a required property is absent. Default: the error is about the property. */
  readonly incomplete?: string;
  /** What an error expects of a required property that is absent. Default: what its schema expects. */
  readonly absent?: Readonly<Record<string, string>>;
  /** Names that users look for here by mistake, and what to use instead. */
  readonly elsewhere?: Readonly<Record<string, string>>;
  /** Further names that are known here, though not to this schema. */
  readonly also?: readonly string[];
  /** What `$ref` stands for. */
  readonly target?: () => JsonSchema;
}

declare const TYPE: unique symbol;

/** Describes the values of `T`: JSON Schema, and what JSON Schema cannot say. Only functions of this folder make one. */
export interface Schema<T> extends JsonSchema {
  readonly [TYPE]: (value: T) => T;
}

/** Makes a schema of keywords. The caller asserts that they describe the values of `T`. */
export function schemaOf<T>(keywords: JsonSchema, own?: Own): Schema<T> {
  return (own === undefined ? keywords : { ...keywords, [OWN]: own }) as Schema<T>;
}
