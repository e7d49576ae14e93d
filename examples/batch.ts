import { strict as assert } from "node:assert";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BatchOptions, readBatch, readResults, runBatch } from "glovebox/batch";

const place = await mkdtemp(join(tmpdir(), "glovebox-example-"));
const out = join(place, "primes.batch");

// #region tasks
const options: BatchOptions = {
  tasks: [7, 8, 9, 10, 11, 12, 13, 14, 15, 16].map((n) => ({
    id: `is-${n}-prime`,
    run: 'test "$(factor "$N")" = "$N: $N"',
    env: { N: String(n) },
  })),
  out,
  backend: "local",
  concurrency: 2,
  timeout: 20_000,
};
// #endregion tasks

try {
  // #region stop
  const first: string[] = [];
  for await (const { taskId, outcome } of runBatch(options)) {
    console.log(taskId, outcome);
    first.push(taskId);
    // Leaving the loop stops the batch. A crash here would do, too.
    if (first.length === 4) break;
  }
  // #endregion stop

  // #region resume
  const run = runBatch(options);
  for await (const { taskId } of run) assert(!first.includes(taskId), "it was finished before");
  assert.equal(run.progress.done, 10);
  // #endregion resume

  // #region read
  const primes: string[] = [];
  for await (const { taskId, outcome } of readResults(out)) if (outcome === "passed") primes.push(taskId);
  assert.deepEqual(primes.sort(), ["is-11-prime", "is-13-prime", "is-7-prime"]);
  const { passed, failed, infra } = await readBatch(out);
  assert.deepEqual({ passed, failed, infra }, { passed: 3, failed: 7, infra: 0 });
  // #endregion read
  console.log("ran, stopped, went on, each task once");
} finally {
  await rm(place, { recursive: true });
}
