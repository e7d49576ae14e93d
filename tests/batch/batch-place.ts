import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import type { BatchOptions, BatchResult, BatchRun } from "../../src/batch.js";
import { runBatch } from "../../src/batch.js";
import { registerBackend } from "../../src/sandbox/registry.js";
import { listSandboxes } from "../../src/sandbox.js";
import { type ServiceOptions, SimulatedService } from "../fakes/simulated-service.js";
import { createScratch, type Scratch } from "../support/scratch.js";

/** A directory for the batches of one test, with an own home. */
export interface BatchPlace extends Scratch {
  readonly out: string;
  /** The lines of a file of the batch. */
  lines(name: "journal.jsonl" | "results.jsonl"): Record<string, unknown>[];
}

/** Makes a place for a batch. */
export function createBatchPlace(): BatchPlace {
  const scratch = createScratch();
  const out = join(scratch.path, "out");
  const lines = (name: string): Record<string, unknown>[] =>
    readFileSync(join(out, name), "utf8")
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { ...scratch, out, lines };
}

/** Tasks with the ids t1, t2, … */
export function manyTasks(count: number, run: string = "true"): { id: string; run: string }[] {
  return Array.from({ length: count }, (_, at) => ({ id: `t${at + 1}`, run }));
}

/** Runs a batch to its end. */
export async function runAll(options: BatchOptions): Promise<{ results: BatchResult[]; run: BatchRun }> {
  const run = runBatch(options);
  const results: BatchResult[] = [];
  for await (const result of run) results.push(result);
  return { results, run };
}

/** The ids of results, sorted. */
export function idsOf(results: readonly Pick<BatchResult, "taskId">[]): string[] {
  return results.map(({ taskId }) => taskId).sort();
}

/** A service has no machine any more, and no ledger a record. */
export async function expectNothingLeft(service: SimulatedService): Promise<void> {
  expect(service.machines).toEqual([]);
  expect(await listSandboxes()).toEqual([]);
}

let services = 0;

/** A service of its own for a test. */
export function serve(options: Omit<ServiceOptions, "name"> = {}): SimulatedService & { name: string } {
  services += 1;
  const name = `simulated-${process.pid}-${services}`;
  const service = new SimulatedService({ ...options, name });
  registerBackend(name, async () => service.backend);
  return Object.assign(service, { name });
}
