import type { NetworkRule } from "../../../contracts/types.js";
import { networkRule } from "../../sandbox/host.js";
import type { Schema } from "../../util/schema.js";
import * as is from "../../util/schema.js";
import type { Duration, LimitsSpec } from "../node-types.js";

const VARIABLE = "^[A-Za-z_][A-Za-z0-9_]*$";

/** The fields that blueprints and kinds of nodes share. */
export const text: Schema<string> = is.string({ minLength: 1, maxLength: 1_000_000 });
export const name: Schema<string> = is.string({ minLength: 1, maxLength: 200 });
export const description: Schema<string> = is.string({ maxLength: 10_000 });
export const texts: Schema<readonly string[]> = is.list(is.string({ maxLength: 100_000 }), { maxItems: 1_000 });
export const argv: Schema<readonly string[]> = is.noted(texts, {
  minItems: 1,
  description: "Program and arguments. No shell sees them; templates become part of one argument.",
});
export const hosts: Schema<readonly (string | NetworkRule)[]> = is.list(
  is.union("the name of a host or a rule", name, networkRule),
);
export const duration: Schema<Duration> = is.scalar(["string", "integer"], {
  pattern: is.DURATION_PATTERN,
  minimum: 1,
  description: "A number followed by ms, s, m, h or d, or milliseconds.",
});
export const positive: Schema<number> = is.scalar("integer", { minimum: 1 });
export const aboveZero: Schema<number> = is.scalar("number", { exclusiveMinimum: 0 });
export const id: Schema<string> = is.string({
  pattern: "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
  description: "Letters, digits, - and _; starts with a letter.",
});
export const variables: Schema<Readonly<Record<string, string>>> = is.record(
  is.string({ maxLength: 100_000 }),
  is.string({ pattern: VARIABLE }),
);
export const secrets: Schema<readonly string[]> = is.list(is.string({ pattern: VARIABLE }), {
  maxItems: 64,
  description: "Names of variables whose values come from outside. Values never stand in a blueprint.",
});
export const cwd: Schema<string> = is.string({ minLength: 1 });
export const limits: Schema<LimitsSpec> = is.object({
  wall: is.noted(duration, { description: "How long it may take. Of a run: 60m unless said otherwise." }),
  costUsd: is.noted(aboveZero, { description: "What the agents may cost, in dollars." }),
  turns: is.noted(positive, { description: "How many turns the agents may take." }),
  idle: is.noted(duration, { description: "How long an agent may be silent. 10m unless said otherwise." }),
});
