/** The part of JSON Schema 2020-12 that our schemas use, and that `findFaults` understands. */
export interface Schema {
  readonly $schema?: string;
  readonly $id?: string;
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, Schema>>;
  readonly title?: string;
  readonly description?: string;
  readonly type?: SchemaType | readonly SchemaType[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly propertyNames?: Schema;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly oneOf?: readonly Schema[];
  /** The property by which a branch of `oneOf` is chosen; each branch lists its values. */
  readonly discriminator?: { readonly propertyName: string };
}

export type SchemaType = "object" | "array" | "string" | "number" | "integer" | "boolean" | "null";
