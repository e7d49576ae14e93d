import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { LABELS } from "../../src/batch/attempt.js";
import { recipesOf } from "../../src/batch/left-sandboxes.js";
import { planTasks } from "../../src/batch/plan-tasks.js";
import { type BatchOptions, readBatch } from "../../src/batch.js";
import { openSandbox } from "../../src/sandbox.js";
import type { SimulatedService } from "../fakes/simulated-service.js";
import { type BatchPlace, createBatchPlace, expectNothingLeft, runAll, serve } from "./batch-place.js";

let place: BatchPlace;
beforeEach(() => {
  place = createBatchPlace();
});
afterEach(() => place.remove());

/** A batch whose driver died when it had made the sandbox of its task. */
async function diedWhenOpened(service: SimulatedService & { name: string }): Promise<BatchOptions> {
  const options = { tasks: [{ id: "a", run: "true" }], out: place.out, backend: service.name };
  await runAll({ ...options, signal: AbortSignal.abort() });
  const { id: batch } = await readBatch(place.out);
  const recipe = (await recipesOf(planTasks(options).tasks, options)).get("a") ?? "";
  const labels = { [LABELS.batch]: batch, [LABELS.task]: "a", [LABELS.attempt]: "1", [LABELS.recipe]: recipe };
  const left = await openSandbox({ backend: service.name, keep: true, labels });
  await left.teardown();
  expect(service.machines).toEqual([left.id]);
  return options;
}

describe("a sandbox that was made and not used", () => {
  test("is used by the next driver", async () => {
    const service = serve();
    const { results } = await runAll(await diedWhenOpened(service));
    expect(results).toMatchObject([{ taskId: "a", outcome: "passed", attempt: 1 }]);
    expect(service.requests).toMatchObject({ create: 1, reopen: 1, exec: 1 });
    await expectNothingLeft(service);
  });

  test("is removed if it would be opened in another way now", async () => {
    const service = serve({ image: "usual" });
    const options = await diedWhenOpened(service);
    await runAll({ ...options, sandbox: { image: "other" } });
    expect(service.requests).toMatchObject({ create: 2, exec: 1 });
    expect(service.requests).not.toHaveProperty("reopen");
    await expectNothingLeft(service);
  });

  test("is removed if its task was changed", async () => {
    const service = serve({ image: "usual" });
    const options = await diedWhenOpened(service);
    await runAll({ ...options, tasks: [{ id: "a", run: "true", image: "other" }], ifChanged: "run" });
    expect(service.requests).toMatchObject({ create: 2, exec: 1 });
    expect(service.requests).not.toHaveProperty("reopen");
    await expectNothingLeft(service);
  });

  test("is removed when the next driver is stopped before it uses it", async () => {
    const service = serve();
    await runAll({ ...(await diedWhenOpened(service)), signal: AbortSignal.abort() });
    await expectNothingLeft(service);
  });
});
