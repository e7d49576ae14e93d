import type { Schema } from "./schema-type.js";

/** The fields that blueprints and kinds of nodes share. */
export const text: Schema = { type: "string", minLength: 1, maxLength: 1_000_000 };
export const name: Schema = { type: "string", minLength: 1, maxLength: 200 };
export const texts: Schema = { type: "array", items: { type: "string", maxLength: 100_000 }, maxItems: 1_000 };
export const argv: Schema = {
  type: "array",
  items: { type: "string", maxLength: 100_000 },
  minItems: 1,
  maxItems: 1_000,
  description: "Program and arguments. No shell sees them; templates become part of one argument.",
};
export const duration: Schema = {
  type: ["string", "integer"],
  pattern: "^\\d+(\\.\\d+)?(ms|s|m|h)$",
  minimum: 1,
  description: "A number with ms, s, m or h behind it, or milliseconds.",
};
export const id: Schema = {
  type: "string",
  pattern: "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
  description: "Letters, digits, - and _; starts with a letter.",
};
export const variables: Schema = {
  type: "object",
  propertyNames: { pattern: "^[A-Za-z_][A-Za-z0-9_]*$" },
  additionalProperties: { type: "string", maxLength: 100_000 },
};
export const secrets: Schema = {
  type: "array",
  items: { type: "string", pattern: "^[A-Za-z_][A-Za-z0-9_]*$" },
  maxItems: 64,
  description: "Names of variables whose values come from outside. Values never stand in a blueprint.",
};
export const cwd: Schema = { type: "string", minLength: 1 };
export const limits: Schema = {
  type: "object",
  additionalProperties: false,
  properties: {
    wall: { ...duration, description: "How long it may take. Of a run: 60m unless said otherwise." },
    costUsd: { type: "number", exclusiveMinimum: 0, description: "What the agents may cost, in dollars." },
    turns: { type: "integer", minimum: 1, description: "How many turns the agents may take." },
    idle: { ...duration, description: "How long an agent may be silent. 10m unless said otherwise." },
  },
};
