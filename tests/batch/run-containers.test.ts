import { afterEach, beforeEach, expect, test } from "vitest";
import { SandboxError } from "../../contracts/errors.js";
import type { ContainerTask } from "../../src/batch.js";
import { registerManager, type SandboxManager, type TaskSetup } from "../../src/tasks.js";
import { type BatchPlace, createBatchPlace, runAll } from "./batch-place.js";

let place: BatchPlace;
beforeEach(() => {
  place = createBatchPlace();
});
afterEach(() => place.remove());

/** A manager without containers, which has no image with "bad" in its name. `asked`: for which images, in their order. */
function registerFake(name: string, asked: string[], failure: SandboxError): void {
  const prepare = (setup: TaskSetup): void => {
    const { imageSpec } = setup.agentContainer.spec;
    const tag = imageSpec.type === "pull" ? imageSpec.tag : "";
    asked.push(tag);
    if (tag.includes("bad")) throw failure;
  };
  const setupTask = async (setup: TaskSetup): Promise<object> => {
    prepare(setup);
    return { state: { agentContainerId: setup.taskId }, [Symbol.asyncDispose]: async () => undefined };
  };
  const manager = {
    setupBatch: async (setups: readonly TaskSetup[]) => {
      for (const setup of setups) prepare(setup);
      return { setupTask, teardown: async () => undefined };
    },
    exec: async () => ({
      exitCode: 0,
      timedOut: false,
      stdout: "",
      stderr: "",
      truncated: { stdout: false, stderr: false },
      durationMs: 1,
    }),
  };
  registerManager(name, async () => ({ createManager: () => manager as unknown as SandboxManager }));
}

function taskOf(id: string, tag: string): ContainerTask {
  return {
    id,
    setup: { taskId: id, agentContainer: { name: "agent", spec: { imageSpec: { type: "pull", tag } } } },
    run: "true",
  };
}

test("an image that can't be had is the failure of the tasks that need it", async () => {
  const asked: string[] = [];
  registerFake("fake-not-found", asked, new SandboxError("not_found", "there is no such image"));
  const tasks = [taskOf("a", "good"), taskOf("b", "bad"), taskOf("c", "good")];
  const { results, run } = await runAll({ tasks, out: place.out, backend: "fake-not-found", concurrency: 1 });
  expect(results).toMatchObject([
    { taskId: "a", outcome: "passed" },
    { taskId: "b", outcome: "refused", error: { code: "not_found" } },
    { taskId: "c", outcome: "passed" },
  ]);
  expect(run.progress).toMatchObject({ passed: 2, refused: 1 });
});

test("a full disk while images are prepared stops the batch", async () => {
  registerFake("fake-full", [], new SandboxError("no_space", "the disk is full"));
  const tasks = [taskOf("a", "good"), taskOf("b", "bad")];
  await expect(runAll({ tasks, out: place.out, backend: "fake-full" })).rejects.toMatchObject({ code: "no_space" });
});
