import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type ConformanceHarness,
  type ConformanceResult,
  conformanceCases,
  createSandboxPool,
  runConformance,
  runConformanceCase,
} from "../../src/testing.js";

/**
 * One test for each case of the kit, or of these groups; skipped ones are listed with their reasons at the end. `notRun`: cases that here pass or fail
 * by what else the machine does, with the reason why.
 */
export function testConformance(
  harness: ConformanceHarness,
  groups?: readonly string[],
  opts: { concurrent?: boolean; notRun?: Readonly<Record<string, string>> } = {},
): void {
  const cases = conformanceCases.filter(({ id }) => groups?.includes(id.split(".")[0] ?? "") ?? true);
  describe(`conformance of ${harness.backend}`, () => {
    const skipped: string[] = [];
    const pool = createSandboxPool(harness);
    afterAll(async () => {
      for (const line of skipped) console.log(`skipped ${harness.backend} ${line}`);
      await pool.close();
    });

    test("every skip names a case", () => {
      const ids = conformanceCases.map(({ id }) => id);
      expect(Object.keys({ ...harness.skips, ...opts.notRun }).filter((id) => !ids.includes(id))).toEqual([]);
    });

    for (const conformanceCase of [...cases].sort(
      (a, b) => Number(a.exclusive ?? false) - Number(b.exclusive ?? false),
    )) {
      const run = opts.concurrent === true && conformanceCase.exclusive !== true ? test.concurrent : test;
      run(`${conformanceCase.id}: ${conformanceCase.title}`, async ({ skip, expect }) => {
        const whyNot = opts.notRun?.[conformanceCase.id];
        if (whyNot !== undefined) {
          skipped.push(`${conformanceCase.id}: ${whyNot}`);
          skip(whyNot);
        }
        const { id, status, reason = "" } = await runConformanceCase(conformanceCase, harness, { pool });
        if (status === "skipped") {
          skipped.push(`${id}: ${reason}`);
          skip(reason);
        }
        expect({ status, reason }).toEqual({ status: "passed", reason: "" });
      });
    }
  });
}

/** As `testConformance`, several cases at one time: for backends where a call is mostly waiting. */
export function testConformanceAtOnce(harness: ConformanceHarness, concurrency: number): void {
  describe(`conformance of ${harness.backend}`, () => {
    const results = new Map<string, ConformanceResult>();
    beforeAll(async () => {
      await runConformance(harness, { concurrency, onResult: (result) => void results.set(result.id, result) });
    }, 600_000);
    afterAll(() => {
      for (const { id, status, reason } of results.values()) {
        if (status === "skipped") console.log(`skipped ${harness.backend} ${id}: ${reason}`);
      }
    });

    test("nothing is named that is no case", () => {
      const ids = conformanceCases.map(({ id }) => id);
      expect([...results.keys()].filter((id) => !ids.includes(id))).toEqual([]);
    });

    for (const { id, title } of conformanceCases) {
      test(`${id}: ${title}`, ({ skip }) => {
        const { status, reason = "" } = results.get(id) ?? {};
        if (status === "skipped") skip(reason);
        expect({ status, reason }).toEqual({ status: "passed", reason: "" });
      });
    }
  });
}
