import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readBatch, runBatch } from "../../src/batch.js";
import { type BatchPlace, createBatchPlace, manyTasks, runAll, serve } from "./batch-place.js";

let place: BatchPlace;
beforeEach(() => {
  place = createBatchPlace();
});
afterEach(() => place.remove());

describe("what a batch is to run", () => {
  test("may be more tasks than a call has arguments", async () => {
    const signal = AbortSignal.abort();
    const run = runBatch({ tasks: manyTasks(150_000), out: place.out, backend: serve().name, signal });
    for await (const _ of run) throw new Error("it was stopped");
    expect(await readBatch(place.out)).toMatchObject({ total: 150_000, done: 0 });
  });

  test("stays the same under another deadline, with which what ran into it is run again", async () => {
    const service = serve({ onCommand: (task, n) => (task === "t2" && n === 1 ? "hangs" : undefined) });
    const options = { tasks: manyTasks(3), out: place.out, backend: service.name };
    const { results } = await runAll({ ...options, timeout: 100 });
    expect(results.find(({ taskId }) => taskId === "t2")).toMatchObject({ outcome: "failed", timedOut: true });
    const again = await runAll({ ...options, timeout: 60_000, retry: ["failed"] });
    expect(again.results).toMatchObject([{ taskId: "t2", outcome: "passed", attempt: 2 }]);
  });
});
