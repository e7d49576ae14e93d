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
