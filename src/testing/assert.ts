import { inspect, isDeepStrictEqual } from "node:util";
import { ERROR_CODES, type SandboxError, type SandboxErrorCode } from "../../contracts/errors.js";

/** A backend broke a promise of the contract. */
export class ConformanceFailure extends Error {
  override readonly name = "ConformanceFailure";
}

/** Thrown to end a case as skipped. */
export class ConformanceSkip extends Error {
  override readonly name = "ConformanceSkip";
}

/** Fails with `message` unless the condition is true. */
export function check(condition: unknown, message: string): asserts condition {
  if (!condition) throw new ConformanceFailure(message);
}

/** Fails unless both are deeply and strictly equal. */
export function equal(actual: unknown, expected: unknown, what: string): void {
  if (!isDeepStrictEqual(actual, expected)) {
    throw new ConformanceFailure(`${what}: expected ${show(expected)}, got ${show(actual)}`);
  }
}

/** Fails unless the bytes are the same; names the first that differs. */
export function equalBytes(actual: Uint8Array | null | undefined, expected: Uint8Array, what: string): void {
  check(actual instanceof Uint8Array, `${what}: expected ${expected.length} bytes, got ${show(actual)}`);
  if (Buffer.compare(actual, expected) === 0) return;
  const at = expected.findIndex((byte, i) => actual[i] !== byte);
  const place = at === -1 ? "the end" : `offset ${at}`;
  throw new ConformanceFailure(
    `${what}: expected ${expected.length} bytes, got ${actual.length}; they differ at ${place}`,
  );
}

/** Fails unless `text` contains `part`. */
export function includes(text: string, part: string, what: string): void {
  check(typeof text === "string" && text.includes(part), `${what}: expected ${show(part)} in ${show(text)}`);
}

/** Fails unless the call rejects with a `SandboxError` of that code; returns the error. */
export async function refuses(
  code: SandboxErrorCode | readonly SandboxErrorCode[],
  what: string,
  call: () => Promise<unknown>,
): Promise<SandboxError> {
  const codes = typeof code === "string" ? [code] : code;
  let value: unknown;
  try {
    value = await call();
  } catch (error) {
    const found = asSandboxError(error, what);
    check(codes.includes(found.code), `${what}: expected ${codes.join(" or ")}, got ${found.code} (${found.message})`);
    return found;
  }
  throw new ConformanceFailure(`${what}: expected ${codes.join(" or ")}, but it resolved to ${show(value)}`);
}

/** Fails unless the error looks like a `SandboxError`. No instanceof: a backend may have its own copy of the class. */
export function asSandboxError(error: unknown, what: string): SandboxError {
  const found = error as Partial<SandboxError> | undefined;
  const isOne =
    error instanceof Error && found?.name === "SandboxError" && ERROR_CODES.some((code) => code === found.code);
  check(isOne, `${what}: expected a SandboxError, got ${show(error)}`);
  return error as SandboxError;
}

/** Fails if the promise does not settle in time. The bound is generous: it detects hangs, not slowness. */
export async function within<T>(ms: number, what: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new ConformanceFailure(`${what}: no result within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

function show(value: unknown): string {
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  if (value instanceof Uint8Array) return `${value.length} bytes`;
  const text = typeof value === "string" ? JSON.stringify(value) : inspect(value, { depth: 3, breakLength: Infinity });
  return text.length <= 400 ? text : `${text.slice(0, 200)} … ${text.slice(-160)} (${text.length} characters)`;
}
