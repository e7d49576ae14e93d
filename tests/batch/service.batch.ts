import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runBatch } from "../../src/batch.js";
import { registerBackend } from "../../src/sandbox/registry.js";
import { listSandboxes } from "../../src/sandbox.js";
import { SimulatedService } from "../fakes/simulated-service.js";
import { type BatchPlace, createBatchPlace, manyTasks } from "./batch-place.js";

const TASKS = 10_000;
const AT_ONCE = 500;

let place: BatchPlace;
beforeEach(() => {
  place = createBatchPlace();
});
afterEach(() => place.remove());

/** What is in use once everything that can be collected is. */
function usedMegabytes(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  return process.memoryUsage().heapUsed / 1e6;
}

test(`${TASKS} tasks at a service, ${AT_ONCE} at once, take as many requests and as much memory in the end as in the beginning`, async () => {
  const service = new SimulatedService({
    name: "far-away",
    latency: { create: 100, exec: 900, remove: 80, jitter: 200 },
    onCommand: (task, n) => (task.endsWith("77") && n === 1 ? "dies" : undefined),
  });
  registerBackend("far-away", async () => service.backend);
  const seen = new Set<string>();
  const marks: { memory: number; requests: number; commands: number }[] = [];
  const options = { tasks: manyTasks(TASKS), out: place.out, backend: "far-away", concurrency: AT_ONCE, backoff: 50 };
  const began = performance.now();
  for await (const { taskId } of runBatch(options)) {
    expect(seen.has(taskId)).toBe(false);
    seen.add(taskId);
    if (seen.size % 2_500 === 0) {
      marks.push({ memory: usedMegabytes(), requests: service.requestCount, commands: service.commands.length });
    }
  }
  const seconds = (performance.now() - began) / 1000;
  expect(seen.size).toBe(TASKS);
  expect(service.most).toBeGreaterThan(AT_ONCE * 0.8);
  expect(service.most).toBeLessThanOrEqual(AT_ONCE);
  expect(service.machines).toEqual([]);
  expect(await listSandboxes()).toEqual([]);
  const [first, second, third, last] = marks;
  if (first === undefined || second === undefined || third === undefined || last === undefined)
    throw new Error("no marks");
  console.log(
    `${TASKS} tasks in ${seconds.toFixed(0)} s, at most ${service.most} at once; heap ${marks.map(({ memory }) => memory.toFixed(0)).join(", ")} MB; ` +
      `${(service.requestCount / service.commands.length).toFixed(2)} requests for each attempt`,
  );
  // One opens, one runs, one removes.
  const ratio = (last.requests - second.requests) / (last.commands - second.commands);
  expect(ratio).toBeGreaterThan(2.8);
  expect(ratio).toBeLessThan(3.2);
  expect(last.memory - first.memory).toBeLessThan(25);
  // A machine that is busy with other work takes several times as long to sync what is written down.
}, 600_000);
