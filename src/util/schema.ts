/**
 * One source for what a value may be. The compiler checks a schema against its type, `check` and `findFaults` check values
 * against the schema, and `toJsonSchema` prints it.
 */
export { check, type Parser, parser } from "./schema/check.js";
export * from "./schema/combine.js";
export { DURATION_PATTERN, parseDuration } from "./schema/duration.js";
export { type Fault, type FieldPath, findFaults } from "./schema/find-faults.js";
export { describe, invalidArgument } from "./schema/invalid-argument.js";
export type { JsonSchema, Schema } from "./schema/schema-type.js";
export { toJsonSchema } from "./schema/to-json-schema.js";
export * from "./schema/values.js";
