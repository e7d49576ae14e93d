import { SandboxError } from "../../../contracts/errors.js";

/** Builds the error for an option whose value cannot be used. */
export function invalidArgument(name: string, expected: string, value: unknown): SandboxError {
  return new SandboxError("invalid_argument", `Invalid ${name}: expected ${expected}, got ${describe(value)}`);
}

/** Renders a value for an error message: short, and without credentials of a URL. */
export function describe(value: unknown): string {
  if (typeof value === "function") return "a function";
  if (typeof value === "bigint" || typeof value === "symbol" || typeof value === "number") return String(value);
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch {
    text = undefined;
  }
  text = (text ?? String(value)).replace(/\/\/[^/@\s]*@/g, "//***@");
  return text.length > 120 ? `${text.slice(0, 117)}...` : text;
}
