import { SandboxError } from "../../contracts/errors.js";
import { nearestName } from "./nearest.js";

/** Throws a `SandboxError` if the value is not allowed for the option of that name. */
export type Check = (value: unknown, name: string) => void;

/** The options that an object may have, each with its check. */
export type Shape = ReadonlyMap<string, Check>;

/** The longest time that a timer can measure. */
const MAX_TIMEOUT = 2_147_483_647;
const MAX_PATH_BYTES = 4096;
const ENV_KEY = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Builds the error for an invalid value of an option. */
export function invalidArgument(name: string, expected: string, value: unknown): SandboxError {
  return new SandboxError("invalid_argument", `Invalid ${name}: expected ${expected}, got ${describe(value)}`);
}

/** Renders a value for an error message: short, and without the credentials of a URL. */
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

/** Checks an object of options: no unknown ones, and a valid value for each; `undefined` counts as absent. */
export function checkOptions(value: unknown, shape: Shape, name: string): void {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw invalidArgument(name, "an object", value);
  }
  for (const key of Object.keys(value)) {
    const check = shape.get(key);
    if (check === undefined) throw unknownOption(key, shape, name);
    const option = (value as Record<string, unknown>)[key];
    if (option !== undefined) check(option, name === "options" ? key : `${name}.${key}`);
  }
}

function unknownOption(key: string, shape: Shape, name: string): SandboxError {
  const nearest = nearestName(key, shape.keys());
  const where = name === "options" ? "" : ` in ${name}`;
  return new SandboxError("invalid_argument", `Unknown option ${describe(key)}${where}`, {
    hint: nearest === undefined ? `known options: ${[...shape.keys()].join(", ")}` : `did you mean "${nearest}"?`,
  });
}

/** A non-empty string without NUL. */
export function checkText(value: unknown, name: string): asserts value is string {
  if (typeof value !== "string" || value === "") throw invalidArgument(name, "a non-empty string", value);
  if (value.includes("\0")) throw invalidArgument(name, "a string without NUL", value);
}

/** A path that the system accepts: `invalid_path` if it is empty, too long or has a NUL. */
export function checkPath(value: unknown, name: string): asserts value is string {
  if (typeof value !== "string") throw invalidArgument(name, "a string", value);
  if (value === "") throw new SandboxError("invalid_path", `Invalid ${name}: the path is empty`);
  if (value.includes("\0")) {
    throw new SandboxError("invalid_path", `Invalid ${name}: the path has a NUL byte: ${describe(value)}`);
  }
  if (value.length > MAX_PATH_BYTES / 4 && Buffer.byteLength(value) > MAX_PATH_BYTES) {
    const size = Buffer.byteLength(value);
    throw new SandboxError(
      "invalid_path",
      `Invalid ${name}: the path has ${size} bytes, at most ${MAX_PATH_BYTES} are possible: ${describe(value)}`,
    );
  }
}

export function checkBoolean(value: unknown, name: string): void {
  if (typeof value !== "boolean") throw invalidArgument(name, "true or false", value);
}

export function checkFunction(value: unknown, name: string): void {
  if (typeof value !== "function") throw invalidArgument(name, "a function", value);
}

/** A deadline: whole milliseconds, more than zero. */
export function checkTimeout(value: unknown, name: string): void {
  if (!isWhole(value, 1, MAX_TIMEOUT)) {
    throw invalidArgument(name, `whole milliseconds from 1 to ${MAX_TIMEOUT}`, value);
  }
}

/** A check for whole numbers in a range, both ends included. */
export function whole(min: number, max: number): Check {
  return (value, name) => {
    if (!isWhole(value, min, max)) throw invalidArgument(name, `a whole number from ${min} to ${max}`, value);
  };
}

/** A check for one of several words. */
export function oneOf(...words: readonly string[]): Check {
  return (value, name) => {
    if (typeof value !== "string" || !words.includes(value)) {
      throw invalidArgument(name, words.map((word) => `"${word}"`).join(" or "), value);
    }
  };
}

/** A check for an array that applies `check` to each element. */
export function arrayOf(check: Check): Check {
  return (value, name) => {
    if (!Array.isArray(value)) throw invalidArgument(name, "an array", value);
    value.forEach((element: unknown, index) => {
      check(element, `${name}[${index}]`);
    });
  };
}

/** Environment variables. Errors never show values: they may be secrets. */
export function checkEnv(value: unknown, name: string): void {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw invalidArgument(name, "an object of strings", Array.isArray(value) ? "an array" : value);
  }
  for (const key of Object.keys(value)) {
    if (!ENV_KEY.test(key)) {
      throw new SandboxError("invalid_argument", `Invalid env key "${key}" — must match [A-Za-z_][A-Za-z0-9_]*`);
    }
    const entry = (value as Record<string, unknown>)[key];
    if (typeof entry !== "string") throw invalidArgument(`${name}.${key}`, "a string", typeof entry);
    if (entry.includes("\0")) {
      throw new SandboxError("invalid_argument", `Invalid ${name}.${key}: the value has a NUL byte`);
    }
  }
}

export function checkSignal(value: unknown, name: string): void {
  const signal = value as Partial<AbortSignal> | null;
  if (typeof signal !== "object" || typeof signal?.aborted !== "boolean" || !signal.addEventListener) {
    throw invalidArgument(name, "an AbortSignal", typeof value);
  }
}

function isWhole(value: unknown, min: number, max: number): boolean {
  return Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
}

const HOST_NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** A host name other than localhost. */
export const checkHostName: Check = (value, name) => {
  if (typeof value === "string" && HOST_NAME.test(value) && value !== "localhost") return;
  throw invalidArgument(name, "a host name", value);
};
