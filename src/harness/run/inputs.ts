import { SandboxError } from "../../../contracts/errors.js";
import { nearestName } from "../../util/nearest.js";
import type { Blueprint, InputSpec } from "../types.js";

type Value = string | number | boolean;

/** Checks the values that a run is given against the inputs of its blueprint; text is read as the type says. */
export function resolveInputs(
  { inputs }: Blueprint,
  given: Readonly<Record<string, Value>> = {},
): Record<string, Value> {
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(inputs, name)) continue;
    const close = nearestName(name, Object.keys(inputs));
    const known = Object.keys(inputs).join(", ") || "none";
    throw new SandboxError("invalid_argument", `The blueprint has no input ${JSON.stringify(name)}`, {
      hint: close === undefined ? `its inputs: ${known}` : `did you mean ${close}?`,
    });
  }
  const values: Record<string, Value> = {};
  for (const [name, spec] of Object.entries(inputs)) {
    const value = given[name] ?? spec.default;
    if (value !== undefined) values[name] = toType(name, value, spec);
    else if (spec.required) {
      const what = spec.description === undefined ? "" : ` (${spec.description})`;
      throw new SandboxError("invalid_argument", `The input ${name}${what} is required`, { hint: `--input ${name}=…` });
    } else if (spec.type === "string") values[name] = "";
  }
  return values;
}

function toType(name: string, value: Value, { type }: InputSpec): Value {
  if (typeof value === type) return value;
  if (typeof value === "string" && type === "number" && value.trim() !== "" && Number.isFinite(Number(value)))
    return Number(value);
  if (type === "boolean" && (value === "true" || value === "false")) return value === "true";
  throw new SandboxError("invalid_argument", `The input ${name} must be a ${type}, not ${JSON.stringify(value)}`);
}
