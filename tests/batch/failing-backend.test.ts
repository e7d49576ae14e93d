import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SandboxError } from "../../contracts/errors.js";
import { type BatchNote, readBatch } from "../../src/batch.js";
import { listSandboxes } from "../../src/sandbox.js";
import {
  type BatchPlace,
  createBatchPlace,
  expectNothingLeft,
  idsOf,
  manyTasks,
  runAll,
  serve,
} from "./batch-place.js";

let place: BatchPlace;
beforeEach(() => {
  place = createBatchPlace();
});
afterEach(() => place.remove());

describe("a backend that fails", () => {
  test("by refusing what is over its quota makes the window smaller, and no task pays for it", async () => {
    const service = serve({ quota: 6, latency: { create: 2, exec: 10 } });
    const { results, run } = await runAll({
      tasks: manyTasks(80),
      out: place.out,
      backend: service.name,
      concurrency: 50,
      retries: 0,
    });
    expect(idsOf(results)).toHaveLength(80);
    expect(results.every(({ outcome, attempt }) => outcome === "passed" && attempt === 1)).toBe(true);
    expect(service.most).toBeLessThanOrEqual(6);
    expect(service.refused).toBeGreaterThan(0);
    expect(run.progress.window).toBeLessThan(50);
    expect(run.progress.causes).toEqual({ unavailable: service.refused });
    await expectNothingLeft(service);
  });

  test("in the middle of a command is no result: the task is run again, within its retries", async () => {
    const service = serve({
      onCommand: (task, n) => (task === "t2" || (task === "t3" && n === 1) ? "dies" : undefined),
    });
    const notes: BatchNote[] = [];
    const { results, run } = await runAll({
      tasks: manyTasks(5),
      out: place.out,
      backend: service.name,
      retries: 2,
      backoff: 1,
      onNote: (note) => notes.push(note),
    });
    expect(idsOf(results)).toEqual(["t1", "t3", "t4", "t5"]);
    expect(results.find(({ taskId }) => taskId === "t3")).toMatchObject({ outcome: "passed", attempt: 2 });
    expect(service.commands.filter((task) => task === "t2")).toHaveLength(3);
    expect(run.progress).toMatchObject({ done: 5, passed: 4, infra: 1, retries: 3, causes: { backend_lost: 4 } });
    expect(notes.filter(({ type }) => type === "infra")).toMatchObject([{ taskId: "t2", code: "backend_lost" }]);
    expect(await readBatch(place.out)).toMatchObject({
      infra: 1,
      causes: { backend_lost: 4 },
      problems: [{ taskId: "t2", outcome: "infra", code: "backend_lost" }],
    });
    await expectNothingLeft(service);
  });

  test("is asked again for what it failed, and only for that", async () => {
    let isIll = true;
    const service = serve({ onCommand: (task) => (isIll && task === "t2" ? "dies" : undefined) });
    const options = { tasks: manyTasks(3), out: place.out, backend: service.name, retries: 0 };
    await runAll(options);
    isIll = false;
    expect((await runAll(options)).results).toEqual([]);
    const { results } = await runAll({ ...options, retry: ["infra"] });
    expect(results).toMatchObject([{ taskId: "t2", outcome: "passed", attempt: 2 }]);
    expect(idsOf(place.lines("results.jsonl") as never)).toEqual(["t1", "t2", "t3"]);
  });

  test("by never ending a command is cut off at the deadline, which is a result", async () => {
    const service = serve({ onCommand: (task) => (task === "t1" ? "hangs" : undefined) });
    const { results } = await runAll({ tasks: manyTasks(3), out: place.out, backend: service.name, timeout: 100 });
    expect(results.find(({ taskId }) => taskId === "t1")).toMatchObject({ outcome: "failed", timedOut: true });
    expect(results).toHaveLength(3);
    await expectNothingLeft(service);
  });

  test("by answering twice is believed once", async () => {
    const service = serve({ onCommand: () => "twice" });
    const { results } = await runAll({ tasks: manyTasks(8), out: place.out, backend: service.name });
    expect(results).toHaveLength(8);
    expect(results.every(({ exitCode }) => exitCode === 0)).toBe(true);
    expect(place.lines("results.jsonl")).toHaveLength(8);
    await expectNothingLeft(service);
  });

  test("by never answering an opening is left at its deadline, and asked again", async () => {
    const service = serve({ onCreate: (n) => (n === 1 ? new Promise<never>(() => undefined) : undefined) });
    const { results } = await runAll({
      tasks: manyTasks(3),
      out: place.out,
      backend: service.name,
      sandbox: { operationTimeout: 300 },
    });
    expect(results).toHaveLength(3);
    expect(results.every(({ outcome }) => outcome === "passed")).toBe(true);
  });

  test("by answering an opening after its deadline leaves nothing, and the task has one result", async () => {
    let answer: () => void = () => undefined;
    const service = serve({
      onCreate: (n) => {
        if (n > 1) return;
        return new Promise<void>((resolve) => {
          answer = resolve;
        });
      },
    });
    const options = { tasks: manyTasks(3), out: place.out, backend: service.name, concurrency: 3 };
    const { results } = await runAll({ ...options, sandbox: { operationTimeout: 300 } });
    expect(idsOf(results)).toEqual(["t1", "t2", "t3"]);
    expect(results.every(({ outcome, attempt }) => outcome === "passed" && attempt === 1)).toBe(true);
    answer();
    await expect.poll(() => service.most > 0 && service.machines.length).toBe(0);
    await expect.poll(() => listSandboxes()).toEqual([]);
    expect(place.lines("results.jsonl")).toHaveLength(3);
  });

  test("by never removing anything does not stop the others", async () => {
    const service = serve({ removalHangs: true });
    const notes: BatchNote[] = [];
    const { results } = await runAll({
      tasks: manyTasks(6),
      out: place.out,
      backend: service.name,
      concurrency: 2,
      sandbox: { operationTimeout: 200 },
      onNote: (note) => notes.push(note),
    });
    expect(results).toHaveLength(6);
    expect(notes.some(({ type }) => type === "leak")).toBe(true);
  });

  test("for all of them stops the batch at once, and a later call goes on", async () => {
    let isKnown = false;
    const service = serve({
      onCreate: (n) => {
        if (n > 3 && !isKnown) throw new SandboxError("unauthenticated", "the key has expired", { hint: "log in" });
      },
    });
    const options = { tasks: manyTasks(200), out: place.out, backend: service.name, concurrency: 3 };
    await expect(runAll(options)).rejects.toMatchObject({ code: "unauthenticated" });
    expect(service.requests["create"]).toBeLessThan(20);
    isKnown = true;
    await runAll(options);
    expect(place.lines("results.jsonl")).toHaveLength(200);
    await expectNothingLeft(service);
  });

  test("by letting nobody in stops the batch, and no task has a result", async () => {
    const service = serve({
      onCreate: () => {
        throw new SandboxError("permission_denied", "403 Forbidden");
      },
    });
    const options = { tasks: manyTasks(100), out: place.out, backend: service.name, concurrency: 4 };
    await expect(runAll(options)).rejects.toMatchObject({ code: "permission_denied" });
    expect(place.lines("results.jsonl")).toEqual([]);
    expect(service.requests["create"]).toBeLessThan(10);
  });

  test("for the images of a few tasks is nobody else's failure", async () => {
    const service = serve({
      image: "usual",
      onCreate: (n) => {
        if (n > 2 && n < 7) throw new SandboxError("unauthenticated", "this image is private");
      },
    });
    const tasks = manyTasks(12).map((task) => ({ ...task, image: "own" }));
    const options = { tasks, out: place.out, backend: service.name, concurrency: 1, backoff: 1 };
    const { run } = await runAll(options);
    expect(run.progress).toMatchObject({ passed: 12, causes: { unauthenticated: 4 } });
  });

  test("for the images of all tasks stops the batch, too", async () => {
    const service = serve({
      image: "usual",
      onCreate: () => {
        throw new SandboxError("unauthenticated", "the key has expired");
      },
    });
    const tasks = manyTasks(200).map((task) => ({ ...task, image: `own-${task.id}` }));
    const options = { tasks, out: place.out, backend: service.name, concurrency: 4 };
    await expect(runAll(options)).rejects.toMatchObject({ code: "unauthenticated" });
    expect(service.requests["create"]).toBeLessThan(40);
    expect(await readBatch(place.out)).toMatchObject({ done: 0 });
  });

  test("for one task is that task's result", async () => {
    const service = serve({
      onCreate: (n) => {
        if (n === 1) throw new SandboxError("not_found", "there is no such image");
      },
    });
    const options = { tasks: manyTasks(3), out: place.out, backend: service.name, concurrency: 1 };
    const { results } = await runAll(options);
    expect(results).toMatchObject([
      { taskId: "t1", outcome: "refused", error: { code: "not_found", message: "there is no such image" } },
      { taskId: "t2", outcome: "passed" },
      { taskId: "t3", outcome: "passed" },
    ]);
  });

  test("by refusing everything stops the batch when its patience is over", async () => {
    const service = serve({ quota: 0 });
    const began = performance.now();
    const options = { tasks: manyTasks(50), out: place.out, backend: service.name, patience: 1000 };
    await expect(runAll(options)).rejects.toMatchObject({ code: "unavailable" });
    expect(performance.now() - began).toBeLessThan(10_000);
    expect(service.requestCount).toBeLessThan(200);
    expect(await readBatch(place.out)).toMatchObject({ done: 0, total: 50 });
  });
});
