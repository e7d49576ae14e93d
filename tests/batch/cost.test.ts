import { afterEach, beforeEach, expect, test } from "vitest";
import { readBatch } from "../../src/batch.js";
import { type BatchPlace, createBatchPlace, manyTasks, runAll, serve } from "./batch-place.js";

let place: BatchPlace;
beforeEach(() => {
  place = createBatchPlace();
});
afterEach(() => place.remove());

test("what was cut off has cost something, too, and no retry", async () => {
  let isStuck = true;
  const service = serve({ onCommand: () => (isStuck ? "hangs" : undefined) });
  // A millisecond costs a dollar.
  const options = { tasks: manyTasks(2), out: place.out, backend: service.name, pricePerHour: 3_600_000, retries: 0 };
  const stop = new AbortController();
  const open = new Set<string>();
  const onStage = (id: string, stage: string): void => {
    if (stage === "running") open.add(id);
    if (open.size === 2) stop.abort();
  };
  const { run } = await runAll({ ...options, signal: stop.signal, onStage });
  const { costUsd = 0 } = run.progress;
  expect(costUsd).toBeGreaterThan(0);
  const left = await readBatch(place.out);
  expect(left).toMatchObject({ done: 0, infra: 0, started: 0, causes: {} });
  expect(left.costUsd).toBeCloseTo(costUsd, 6);
  isStuck = false;
  const again = await runAll(options);
  expect(again.results).toMatchObject([{ attempt: 2 }, { attempt: 2 }]);
  expect(again.run.progress.costUsd).toBeGreaterThan(costUsd);
});
