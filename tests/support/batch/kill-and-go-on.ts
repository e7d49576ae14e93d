import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import type { BatchResult } from "../../../src/batch.js";
import type { Bench } from "../cli.js";

const KILLS = 3;

/** A batch to be killed: how many tasks, with which flags, and what else happens just before a kill. */
export interface DoomedBatch {
  readonly name: string;
  readonly count: number;
  readonly argv: readonly string[];
  readonly env: Record<string, string>;
  beforeKill?(kill: number): Promise<void>;
}

function idsIn(text: string): string[] {
  return text
    .slice(0, text.lastIndexOf("\n") + 1)
    .split("\n")
    .filter(Boolean)
    .map((line) => (JSON.parse(line) as BatchResult).taskId);
}

/** Runs tasks, kills the driver each time another part of them is done, and says what each task came to. */
export async function killAndGoOn(bench: Bench, { name, count, argv, env, beforeKill }: DoomedBatch): Promise<void> {
  const path = join(bench.path, `${name}.jsonl`);
  const out = join(bench.path, `${name}.batch`);
  const ids = Array.from({ length: count }, (_, at) => `t${at}`);
  // Some take long enough to be under way when their driver dies.
  const lineOf = (id: string, at: number): string =>
    `${JSON.stringify({ id, run: `${at % 20 === 0 ? "sleep 1; " : ""}echo $GLOVEBOX_TASK_ID` })}\n`;
  writeFileSync(path, ids.map(lineOf).join(""));
  const began = performance.now();
  const printed: string[] = [];
  const doneSoFar = (): number => idsIn(readFileSync(join(out, "results.jsonl"), "utf8")).length;
  for (let kill = 1; kill <= KILLS; kill++) {
    const running = bench.start(["batch", "run", path, ...argv], env);
    await running.printed('"taskId"');
    await expect
      .poll(doneSoFar, { timeout: 240_000, interval: 100 })
      .toBeGreaterThanOrEqual((count / (KILLS + 1)) * kill);
    await beforeKill?.(kill);
    running.child.kill("SIGKILL");
    printed.push(...idsIn((await running.ended).stdout));
  }
  const last = await bench.run(["batch", "resume", path], { env });
  expect(last.code, `${last.stderr}\n${readFileSync(join(out, "journal.jsonl"), "utf8").slice(-4_000)}`).toBe(0);
  printed.push(...idsIn(last.stdout));
  const results = readFileSync(join(out, "results.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as BatchResult);
  expect(results.map(({ taskId }) => taskId).sort()).toEqual([...ids].sort());
  expect(results.filter(({ taskId, stdout }) => stdout !== `${taskId}\n`)).toEqual([]);
  // Killed between writing it down and printing it, a driver prints a result not at all, and never twice.
  expect(new Set(printed).size).toBe(printed.length);
  const attempts = readFileSync(join(out, "journal.jsonl"), "utf8").split('"t":"started"').length - 1;
  const seconds = ((performance.now() - began) / 1000).toFixed(0);
  console.log(`${name}: ${count} tasks, ${KILLS} kills, ${attempts} attempts, ${seconds} s`);
  expect(JSON.parse((await bench.run(["ls", "--json"], { env })).stdout)).toEqual([]);
}
