import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { conformanceCases, runConformance } from "../../src/testing.js";
import { openMutants } from "../mutants/open-mutants.js";
import { createOpenHarness, type OpenMutant } from "../mutants/opened.js";
import { createScratch, type Scratch } from "../support/scratch.js";

let scratch: Scratch;
beforeAll(() => {
  scratch = createScratch();
});
afterAll(() => scratch.remove());

const caught = [...new Set(openMutants.map((mutant) => mutant.caught))];

describe("the list of mutants", () => {
  test("has names of their own, and cases that exist", () => {
    expect(new Set(openMutants.map(({ name }) => name)).size).toBe(openMutants.length);
    const ids = conformanceCases.map(({ id }) => id);
    expect(caught.filter((id) => !ids.includes(id))).toEqual([]);
  });
});

describe("the unbroken backend", () => {
  test("is red on no case that a mutant turns red", async () => {
    const harness = createOpenHarness();
    try {
      const { results } = await runConformance(harness, { only: caught, concurrency: 2 });
      expect(results.filter(({ status }) => status === "failed")).toEqual([]);
      expect(results.length).toBe(caught.length);
    } finally {
      await harness.cleanUp();
    }
  });
});

describe.concurrent("a mutant is caught:", () => {
  test.each(openMutants)("$name", async (mutant) => {
    const harness = createOpenHarness(mutant);
    try {
      const { results } = await runConformance(harness, { only: [mutant.caught], caseTimeout: 60_000 });
      expect(reasonOf(results, mutant)).toMatch(mutant.because);
    } finally {
      await harness.cleanUp();
    }
  });
});

function reasonOf(results: Awaited<ReturnType<typeof runConformance>>["results"], { caught: id }: OpenMutant): string {
  const found = results.find((result) => result.id === id);
  return found?.status === "failed" ? (found.reason ?? "") : `${id} ${found?.status ?? "was not run"}`;
}
