import { afterAll, describe, expect, test } from "vitest";
import { type ConformanceHarness, conformanceCases, runConformanceCase } from "../../src/testing.js";

/**
 * One test for each case of the kit, or of these groups; skipped ones are listed with their reasons at the end.
 *
 * `concurrent` is for backends that mostly wait; cases that must be alone are.
 */
export function testConformance(
  harness: ConformanceHarness,
  groups?: readonly string[],
  { concurrent = false }: { concurrent?: boolean } = {},
): void {
  const cases = conformanceCases.filter(({ id }) => groups?.includes(id.split(".")[0] ?? "") ?? true);
  describe(`conformance of ${harness.backend}`, () => {
    const skipped: string[] = [];
    afterAll(() => {
      for (const line of skipped) console.log(`skipped ${harness.backend} ${line}`);
    });

    test("every skip names a case", () => {
      const ids = conformanceCases.map(({ id }) => id);
      expect(Object.keys(harness.skips ?? {}).filter((id) => !ids.includes(id))).toEqual([]);
    });

    for (const conformanceCase of cases) {
      const options = { timeout: 180_000, concurrent: concurrent && conformanceCase.exclusive !== true };
      test(`${conformanceCase.id}: ${conformanceCase.title}`, options, async ({ skip, expect }) => {
        const { id, status, reason = "" } = await runConformanceCase(conformanceCase, harness);
        if (status === "skipped") {
          skipped.push(`${id}: ${reason}`);
          skip(reason);
        }
        expect({ status, reason }).toEqual({ status: "passed", reason: "" });
      });
    }
  });
}
