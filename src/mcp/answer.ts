import { stripVTControlCharacters } from "node:util";
import { toSandboxError } from "../../contracts/errors.js";
import { type RedactOptions, redact } from "../util/redact.js";
import { truncate } from "../util/sanitize.js";
import { MAX_ERROR } from "./limits.js";

/** How the server writes what it answers. */
export interface AnswerStyle {
  /** Bytes of text in one answer. */
  readonly maxOutput: number;
  /** Whether escape sequences stay. */
  readonly ansi: boolean;
  /** Secrets that must not be in an answer. */
  readonly hidden: RedactOptions;
}

/** Output of a command as the model should read it. */
export function readable(text: string, { ansi }: AnswerStyle): string {
  return ansi ? text : stripVTControlCharacters(text).replaceAll("\r\n", "\n");
}

/** The text of an answer that is not output of a command: no secrets, and not too long. */
export function bounded(text: string, { hidden, maxOutput }: AnswerStyle): string {
  return truncate(redact(text, hidden), maxOutput);
}

/** Hides secrets in everything that programs get beside the text. */
export function withoutSecrets(value: unknown, hidden: RedactOptions): unknown {
  if (typeof value === "string") return redact(value, hidden);
  if (Array.isArray(value)) return value.map((each) => withoutSecrets(each, hidden));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, withoutSecrets(each, hidden)]));
}

/** What a tool answers that could not do its work. */
export interface ToolFailure {
  readonly text: string;
  readonly fields: { code: string; message: string; hint?: string; retryable: boolean };
}

/** Explains to a model why a tool could not do its work. */
export function explain(error: unknown, hidden: RedactOptions): ToolFailure {
  const { code, message, hint, retryable } = toSandboxError(error);
  const fields = {
    code,
    message: truncate(redact(message, hidden), MAX_ERROR / 2),
    ...(hint !== undefined && { hint: truncate(redact(hint, hidden), MAX_ERROR / 4) }),
    retryable,
  };
  return { text: `${code}: ${fields.message}${fields.hint === undefined ? "" : `\nhint: ${fields.hint}`}`, fields };
}
