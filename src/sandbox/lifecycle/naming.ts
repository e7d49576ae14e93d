import { SandboxError } from "../../../contracts/errors.js";
import { assertSandboxName } from "../../machine/sandbox-name.js";
import { hasControls } from "../../util/inert-text.js";
import * as is from "../../util/schema.js";
import { invalidArgument } from "../../util/schema.js";

const MOST = 16;
const KEY = "^[A-Za-z0-9._/-]{1,63}$";
const LONGEST = 255;

/** The id or the name of a sandbox that exists. Such a text is never a path. */
export const referenceSchema: is.Schema<string> = is.matching(
  /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/,
  "the id or the name of a sandbox",
);

/** The name of a new sandbox. */
export const nameSchema: is.Schema<string> = is.and(is.string(), assertSandboxName);

/** The labels of a sandbox, or those to find one by. */
export const labelsSchema: is.Schema<Readonly<Record<string, string>>> = is.custom(checkLabels, {
  type: "object",
  maxProperties: MOST,
  propertyNames: { pattern: KEY },
  additionalProperties: { type: "string", maxLength: LONGEST },
});

function checkLabels(value: unknown, name: string): void {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw invalidArgument(name, "an object of strings", Array.isArray(value) ? "an array" : value);
  }
  const entries = Object.entries(value);
  if (entries.length > MOST) {
    throw new SandboxError(
      "invalid_argument",
      `Invalid ${name}: ${entries.length} labels, at most ${MOST} are possible`,
      {
        hint: "keep what else you know about a sandbox in a file of yours, under its id",
      },
    );
  }
  for (const [key, text] of entries) checkLabel(`${name}.${shown(key)}`, key, text);
}

function checkLabel(name: string, key: string, text: unknown): void {
  if (!new RegExp(KEY).test(key)) {
    throw new SandboxError("invalid_argument", `Invalid ${name}: the key must match ${KEY}`, {
      hint: "a key has 1 to 63 letters, digits, dots, dashes, underscores and slashes",
    });
  }
  if (typeof text !== "string") throw invalidArgument(name, "a string", text);
  if (text.length > LONGEST) {
    throw new SandboxError(
      "invalid_argument",
      `Invalid ${name}: ${text.length} characters, at most ${LONGEST} are possible`,
      {
        hint: "shorten the value, or write it to a file in the sandbox",
      },
    );
  }
  if (hasControls(text)) {
    throw new SandboxError("invalid_argument", `Invalid ${name} ${shown(text)}: it has a control character`, {
      hint: "labels are shown in lists and on terminals; use printable characters",
    });
  }
}

function shown(text: string): string {
  return /^[A-Za-z0-9._/-]{1,63}$/.test(text)
    ? text
    : JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
