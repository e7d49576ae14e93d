import { SandboxError } from "../../../../contracts/errors.js";

/** What a source gave. */
export interface FetchedValue {
  readonly value: string;
  /** Milliseconds since 1970. Undefined: it does not expire. */
  readonly expiresAt?: number;
}

/** The most bytes of a value. */
export const MAX_VALUE_BYTES: number = 64 * 1024;
/** A shorter one is in every other text, so it could not be masked in answers. */
const MIN_LENGTH = 8;

/** Removes the line end that editors and programs add. */
export function withoutLineEnd(text: string): string {
  return text.replace(/\r?\n$/, "");
}

/** Throws for a value that can't be used in this place. Never shows the value. */
export function checkValue(name: string, value: string, place: "header" | "query" | "body"): void {
  const refuse = (why: string, hint: string): SandboxError =>
    new SandboxError("unauthenticated", `The value of secret ${name} ${why}`, { hint });
  if (value.length < MIN_LENGTH) {
    throw refuse(`has fewer than ${MIN_LENGTH} characters`, "a value that short is found in every other text");
  }
  if (place === "header" && !/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(value)) {
    throw refuse("has characters that a header can't have", "look for line ends and spaces around it");
  }
  if (value.includes("\0")) throw refuse("has a NUL byte", "a secret is text");
}
