import { expect } from "vitest";
import { SandboxError } from "../../contracts/errors.js";

/** Longer than any path may be. */
export const LONG: string = "x".repeat(5_000);

/** Expects a typed refusal whose message has all of these words. */
export async function expectRefused(call: Promise<unknown>, code: string, ...words: string[]): Promise<void> {
  const error: unknown = await call.then(
    () => "was taken",
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(SandboxError);
  expect(error).toMatchObject({ code });
  for (const word of words) expect((error as SandboxError).message).toContain(word);
}

/** What a call is refused with; fails if it is not. */
export async function refusalOf(call: Promise<unknown>): Promise<unknown> {
  const outcome = await call.then(
    () => "was taken",
    (reason: unknown) => reason,
  );
  expect(outcome).toBeInstanceOf(SandboxError);
  return outcome;
}
