import { SandboxError } from "../../../contracts/errors.js";
import { and } from "./combine.js";
import { describe, invalidArgument } from "./invalid-argument.js";
import { type Check, type JsonSchema, type Own, type Schema, schemaOf } from "./schema-type.js";

/** Longest deadline that a timer can keep, in milliseconds: almost 25 days. */
export const MAX_TIMEOUT = 2_147_483_647;
const MAX_PATH_BYTES = 4096;
const VARIABLE = "^[A-Za-z_][A-Za-z0-9_]*$";
const ENV_KEY = new RegExp(VARIABLE);

/** A value that only a function can check; `keywords` are printed. */
export function custom<T>(check: Check, keywords: JsonSchema = {}): Schema<T> {
  return schemaOf(keywords, { check });
}

/** Anything at all. */
export const anything: Schema<unknown> = schemaOf({});

interface Scalars {
  string: string;
  number: number;
  integer: number;
  boolean: boolean;
  null: null;
}

/** A value of one of these types, restricted by keywords. */
export function scalar<K extends keyof Scalars>(type: K | readonly K[], keywords: JsonSchema = {}): Schema<Scalars[K]> {
  return schemaOf({ type, ...keywords });
}

/** A text, restricted by keywords. */
export function string(keywords: JsonSchema = {}, expected: Own["expected"] = {}): Schema<string> {
  return schemaOf({ type: "string", ...keywords }, { expected });
}

/** A text that matches; `expected` describes it in an error. */
export function matching(form: RegExp, expected: string, keywords: JsonSchema = {}): Schema<string> {
  return string({ pattern: form.source, ...keywords }, expected);
}

/** A rule for texts that go to the kernel, which ends them at a NUL. */
export const withoutNul: Check<string> = (value, name) => {
  if (value.includes("\0")) throw invalidArgument(name, "a string without NUL", value);
};

/** A text without NUL. */
export const argument: Schema<string> = and(string(), withoutNul);

/** A text without NUL that is not empty. */
export const text: Schema<string> = and(string({ minLength: 1 }), withoutNul);

/** A path that the system can take: `invalid_path` when empty, too long or with a NUL. */
export const path: Schema<string> = custom(checkPath, { type: "string", minLength: 1 });

export const flag: Schema<boolean> = schemaOf({ type: "boolean" });

/** A whole number in a range, both ends included. */
export function whole(minimum: number, maximum: number, expected: Own["expected"] = {}): Schema<number> {
  return schemaOf({ type: "integer", minimum, maximum }, { expected });
}

export const port: Schema<number> = whole(1, 65_535);

/** A whole number above zero. */
export const positive: Schema<number> = whole(1, Number.MAX_SAFE_INTEGER);

/** A deadline: whole milliseconds, more than zero. */
export const timeout: Schema<number> = whole(1, MAX_TIMEOUT, `whole milliseconds from 1 to ${MAX_TIMEOUT}`);

/** A number of processors; fractions are possible. */
export const cores: Schema<number> = custom(
  (value, name) => {
    if (typeof value === "number" && Number.isFinite(value) && value > 0) return;
    throw invalidArgument(name, "a number of cores above zero", value);
  },
  { type: "number", exclusiveMinimum: 0 },
);

/** One of a few words. */
export function oneOf<const W extends readonly string[]>(...words: W): Schema<W[number]> {
  return schemaOf({ enum: words });
}

/** This value and no other. */
export function literal<const T>(value: T, expected: string): Schema<T> {
  return schemaOf({ const: value }, { expected });
}

export function callback<T extends (...args: never) => unknown>(): Schema<T> {
  return custom((value, name) => {
    if (typeof value !== "function") throw invalidArgument(name, "a function", value);
  });
}

/** Environment variables. Values are never shown: they may be secrets. */
export const env: Schema<Readonly<Record<string, string>>> = custom(checkEnv, {
  type: "object",
  propertyNames: { pattern: VARIABLE },
  additionalProperties: { type: "string" },
});

export const signal: Schema<AbortSignal> = custom((value, name) => {
  const given = value as Partial<AbortSignal> | null;
  if (typeof given === "object" && typeof given?.aborted === "boolean" && given.addEventListener) return;
  throw invalidArgument(name, "an AbortSignal", typeof value);
});

/** A key or token. It is never shown: it may be a good one with a line end after it. */
export const token: Schema<string> = custom((value, name) => {
  if (typeof value === "string" && /^[\x21-\x7e]+$/.test(value)) return;
  throw new SandboxError("invalid_argument", `Invalid ${name}: expected printable characters without spaces`);
});

const IMAGE_PART = "[a-z0-9]+(?:(?:\\.|_{1,2}|-+)[a-z0-9]+)*";
const REGISTRY = "(?:[A-Za-z0-9-]+(?:\\.[A-Za-z0-9-]+)*|\\[[0-9a-fA-F:]+\\])(?::[0-9]{1,5})?";
const IMAGE = `(?:${REGISTRY}/)?${IMAGE_PART}(?:/${IMAGE_PART})*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?`;

/** What registries and engines take for the name of an image, with or without a tag and a digest; or what matches `other`. */
export function imageName(expected: string, other?: string): Schema<string> {
  return string({ pattern: `^(?:${other === undefined ? IMAGE : `${IMAGE}|${other}`})$`, maxLength: 400 }, expected);
}

/** A name that a machine can be reached by, and that is not the one of every machine. */
export const hostName: Schema<string> = matching(/^(?!localhost$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, "a host name");

function checkPath(value: unknown, name: string): void {
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

function checkEnv(value: unknown, name: string): void {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw invalidArgument(name, "an object of strings", Array.isArray(value) ? "an array" : value);
  }
  for (const [key, entry] of Object.entries(value)) {
    if (!ENV_KEY.test(key)) {
      throw new SandboxError("invalid_argument", `Invalid env key "${key}" — must match [A-Za-z_][A-Za-z0-9_]*`);
    }
    if (typeof entry !== "string") throw invalidArgument(`${name}.${key}`, "a string", typeof entry);
    if (entry.includes("\0")) {
      throw new SandboxError("invalid_argument", `Invalid ${name}.${key}: the value has a NUL byte`);
    }
  }
}
