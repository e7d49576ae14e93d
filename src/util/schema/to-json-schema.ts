import { type JsonSchema, OWN } from "./schema-type.js";

/** Prints a schema: plain JSON Schema, with everything that is referred to as a definition. */
export function toJsonSchema(schema: JsonSchema): JsonSchema {
  const definitions: Record<string, JsonSchema> = {};
  const collect = (part: unknown): void => {
    if (typeof part !== "object" || part === null) return;
    const { $ref, [OWN]: own } = part as JsonSchema;
    const name = $ref?.replace("#/$defs/", "");
    if (name !== undefined && own?.target !== undefined && !Object.hasOwn(definitions, name)) {
      definitions[name] = own.target();
      collect(definitions[name]);
    }
    Object.values(part).forEach(collect);
  };
  collect(schema);
  const hasDefinitions = Object.keys(definitions).length > 0;
  return JSON.parse(JSON.stringify({ ...schema, ...(hasDefinitions && { $defs: definitions }) })) as JsonSchema;
}
