import { SandboxError } from "../../contracts/errors.js";

const SANDBOX_NAME = /^[a-z0-9][a-z0-9._-]{0,62}$/;
/** The ids that Glovebox makes. */
const LIKE_AN_ID = /^[0-9a-f]{16}$/;

/** Whether a string can be the name of a sandbox. Such a string is never a path, and never an id that Glovebox makes. */
export function isSandboxName(value: string): boolean {
  return SANDBOX_NAME.test(value) && !LIKE_AN_ID.test(value);
}

/** Throws `invalid_argument` unless the value can be the name of a sandbox. */
export function assertSandboxName(value: string, option: string): void {
  if (isSandboxName(value)) return;
  const shown = JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
  if (LIKE_AN_ID.test(value)) {
    throw new SandboxError("invalid_argument", `Invalid ${option} ${shown}: it looks like the id of a sandbox`, {
      hint: "choose a name that is not 16 hexadecimal digits",
    });
  }
  throw new SandboxError("invalid_argument", `Invalid ${option} ${shown} — must match ${SANDBOX_NAME.source}`, {
    hint: "a name has at most 63 small letters, digits, dots, dashes and underscores, and starts with a letter or digit",
  });
}
