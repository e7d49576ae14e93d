import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { BatchResult } from "../../src/batch.js";
import { type Bench, createBench } from "../support/cli.js";

const FAULTS = fileURLToPath(new URL("../fixtures/faulty-disk.mjs", import.meta.url));
const IDS = ["a", "b", "c"];
/** More than a driver takes for these tasks. */
const MOST_STEPS = 60;

let bench: Bench;
beforeAll(() => {
  bench = createBench();
});
afterAll(() => bench.remove());

function idsIn(text: string): string[] {
  return text
    .split("\n")
    .filter(Boolean)
    .map((line) => (JSON.parse(line) as BatchResult).taskId);
}

/** Runs tasks with a fault at a step of the journal, goes on, and says whether there was such a step. */
async function runWith(fault: "kill" | "full", step: number): Promise<boolean> {
  const name = `${fault}-${step}`;
  const out = join(bench.path, `${name}.batch`);
  const path = join(bench.path, `${name}.jsonl`);
  writeFileSync(path, IDS.map((id) => `${JSON.stringify({ id, run: "echo $GLOVEBOX_TASK_ID" })}\n`).join(""));
  const argv = ["batch", "run", path, "-b", "local", "-c", "2"];
  const env = { NODE_OPTIONS: `--import=${FAULTS}`, TEST_FAULT: `${fault}@${step}` };
  const first = await bench.run(argv, { env });
  if (first.code === 0) return false;
  const what = `${name}: ${first.stderr}`;
  if (fault === "kill") expect(first.signal, what).toBe("SIGKILL");
  else expect([first.code, first.stderr.includes("ENOSPC")], what).toEqual([1, true]);
  const printed = idsIn(first.stdout);
  const last = await bench.run(argv);
  expect(last.code, `${what}\n${last.stderr}`).toBe(0);
  const all = [...printed, ...idsIn(last.stdout)];
  expect(new Set(all).size, what).toBe(all.length);
  expect(idsIn(readFileSync(join(out, "results.jsonl"), "utf8")).sort(), what).toEqual(IDS);
  return true;
}

describe.each(["kill", "full"] as const)("with the fault %s", (fault) => {
  test("at any step of its journal, a driver leaves one that the next goes on with, each task once", async () => {
    let steps = 0;
    let isOver = false;
    const work = async (): Promise<void> => {
      while (!isOver && steps < MOST_STEPS) {
        steps += 1;
        if (!(await runWith(fault, steps))) isOver = true;
      }
    };
    await Promise.all([work(), work()]);
    expect(isOver).toBe(true);
    // Two files are opened, the header, the tasks, and of each task its start and its result in two files.
    expect(steps).toBeGreaterThan(15);
    console.log(`${fault}: ${steps} steps`);
    expect(await bench.settled()).toEqual([]);
    expect(JSON.parse((await bench.run(["ls", "--json"])).stdout)).toEqual([]);
    // Some fifty drivers, which take several times as long beside other work.
  }, 900_000);
});
