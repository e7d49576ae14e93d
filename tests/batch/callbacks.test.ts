import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { BatchProgress } from "../../src/batch.js";
import { listSandboxes } from "../../src/sandbox.js";
import { type BatchPlace, createBatchPlace, manyTasks, runAll, serve } from "./batch-place.js";

let place: BatchPlace;
beforeEach(() => {
  place = createBatchPlace();
});
afterEach(() => place.remove());

describe("a callback of a batch", () => {
  test.each(["onProgress", "onStage", "onNote"])("%s that throws stops it, and nothing is left", async (name) => {
    const service = serve({
      latency: { create: 20, exec: 50 },
      onCommand: (task) => (task === "t3" ? "dies" : undefined),
    });
    let calls = 0;
    const callback = (): void => {
      calls += 1;
      if (name === "onNote" || calls === 12) throw new Error("a mistake of the user");
    };
    const options = { tasks: manyTasks(20), out: place.out, backend: service.name, concurrency: 4 };
    await expect(runAll({ ...options, [name]: callback })).rejects.toThrow("a mistake of the user");
    expect(service.commands.length).toBeLessThan(20);
    expect(service.machines).toEqual([]);
    expect(await listSandboxes()).toEqual([]);
    const { run } = await runAll({ ...options, retries: 0 });
    expect(run.progress).toMatchObject({ passed: 19, infra: 1 });
  });

  test("that stops the batch when a task is to start stops that task, too", async () => {
    const service = serve();
    const stop = new AbortController();
    const onStage = (): void => stop.abort();
    const options = { tasks: manyTasks(3), out: place.out, backend: service.name, concurrency: 1 };
    const { run } = await runAll({ ...options, signal: stop.signal, onStage });
    expect(run.stopped).toBe("aborted");
    expect(service.requestCount).toBe(0);
  });

  test("is told of each task once: it waits, runs or is done", async () => {
    const service = serve({ latency: { remove: 5 } });
    const seen: BatchProgress[] = [];
    const onProgress = (progress: BatchProgress): void => void seen.push(progress);
    await runAll({ tasks: manyTasks(12), out: place.out, backend: service.name, concurrency: 3, onProgress });
    expect(seen.length).toBeGreaterThan(24);
    for (const { done, running, waiting, total } of seen) {
      expect(Math.min(done, running, waiting)).toBeGreaterThanOrEqual(0);
      expect(done + running + waiting).toBe(total);
    }
    expect(seen.at(-1)).toMatchObject({ done: 12, running: 0, waiting: 0 });
  });
});
