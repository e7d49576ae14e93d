import { describe, type SuiteOptions, test } from "vitest";

/** A suite that is not run where there is a reason against it; the reason then stands in its place. */
export function describeUnless(
  reason: string | undefined,
  name: string,
  options: SuiteOptions,
  tests: () => void,
): void {
  if (reason === undefined) describe(name, options, tests);
  else describe(name, () => test("all of it", ({ skip }) => skip(reason)));
}
