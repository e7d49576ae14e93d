import { SandboxError } from "../../contracts/errors.js";

const SANDBOX_ID = /^[a-z0-9][a-z0-9-]{2,40}$/;

/** Whether a string can be the id of a sandbox. Such a string is never a path. */
export function isSandboxId(value: string): boolean {
  return SANDBOX_ID.test(value);
}

/** Throws `invalid_argument` unless the value can be the id of a sandbox. */
export function assertSandboxId(id: unknown): asserts id is string {
  if (typeof id === "string" && isSandboxId(id)) return;
  throw new SandboxError("invalid_argument", `Invalid id ${JSON.stringify(id)} — must match ${SANDBOX_ID.source}`);
}
