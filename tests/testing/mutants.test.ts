import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { type ConformanceResult, conformanceCases, runConformance } from "../../src/testing.js";
import { createMutantHarness } from "../mutants/base.js";
import { leaked } from "../mutants/ending-mutants.js";
import type { Mutant } from "../mutants/mutant.js";
import { mutants } from "../mutants/mutants.js";
import { leftListeners } from "../mutants/port-mutants.js";

/** Quick cases of every kind that each mutant meets beside the one that is there to catch it. */
const QUICK = [
  "exec.argv.verbatim",
  "exec.cwd.relative",
  "exec.env.values",
  "exec.exit.codes",
  "exec.output.separate",
  "exec.output.cap-exact",
  "exec.stdin.string",
  "files.empty",
  "files.modes",
  "files.text",
  "links.read-out",
];

/** Which cases went red for which mutant; written anew when UPDATE_RED_LIST is set. */
const listFile = fileURLToPath(new URL("../mutants/red-list.json", import.meta.url));
const recorded = JSON.parse(readFileSync(listFile, "utf8")) as Record<string, string[]>;
const seen: Record<string, string[]> = {};
const isUpdate = process.env["UPDATE_RED_LIST"] !== undefined;

afterAll(async () => {
  for (const handle of leaked.splice(0)) await handle.close();
  for (const server of leftListeners.splice(0)) server.close();
  if (!isUpdate) return;
  const sorted = mutants.map(({ name }) => [name, seen[name] ?? recorded[name] ?? []]);
  writeFileSync(listFile, `${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`);
});

describe("the list of mutants", () => {
  test("has at least twelve, each with a name of its own and a case that exists", () => {
    expect(mutants.length).toBeGreaterThanOrEqual(12);
    expect(new Set(mutants.map(({ name }) => name)).size).toBe(mutants.length);
    const ids = conformanceCases.map(({ id }) => id);
    expect([...mutants.map(({ caught }) => caught), ...QUICK].filter((id) => !ids.includes(id))).toEqual([]);
  });

  test("is the one that is recorded", ({ skip }) => {
    if (isUpdate) skip("the list is being written anew");
    expect(Object.keys(recorded)).toEqual(mutants.map(({ name }) => name));
  });
});

describe.concurrent("the unbroken base", () => {
  const caught = [...new Set([...QUICK, ...mutants.map((mutant) => mutant.caught)])];
  test("is green on every case that a mutant turns red", async () => {
    const harness = createMutantHarness();
    try {
      const report = await runConformance(harness, { only: caught, concurrency: 4 });
      expect(report.results.filter(({ status }) => status !== "passed")).toEqual([]);
      expect(report.passed).toBe(caught.length);
    } finally {
      await harness.cleanUp();
    }
  });
});

describe("a mutant is caught, alone:", () => {
  test.each(mutants.filter(({ alone }) => alone))("$name", (mutant) => catches(mutant));
});

describe.concurrent("a mutant is caught:", () => {
  test.each(mutants.filter(({ alone }) => !alone))("$name", (mutant) => catches(mutant));
});

async function catches(mutant: Mutant): Promise<void> {
  const harness = createMutantHarness(mutant);
  try {
    const only = [...new Set([mutant.caught, ...QUICK])];
    const { results } = await runConformance(harness, { only, concurrency: 2, caseTimeout: mutant.patience ?? 30_000 });
    const red = results.filter(({ status }) => status === "failed");
    expect(reasonOf(results, mutant.caught)).toMatch(mutant.because);
    seen[mutant.name] = red.map(({ id }) => id).sort();
    if (!isUpdate) expect(seen[mutant.name]).toEqual(recorded[mutant.name]);
  } finally {
    await harness.cleanUp();
  }
}

function reasonOf(results: readonly ConformanceResult[], id: string): string {
  const found = results.find((result) => result.id === id);
  return found?.status === "failed" ? (found.reason ?? "") : `${id} ${found?.status ?? "was not run"}`;
}
