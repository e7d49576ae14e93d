import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { reap } from "../../src/sandbox.js";
import { createSandboxManager } from "../../src/tasks.js";
import { BUSYBOX } from "../support/docker/engine.js";
import { untilDestroyed } from "../support/docker/engine-events.js";
import { describeOwnEngine } from "../support/docker/own-engine.js";
import { askEngine, batchCensus, box, taskOf } from "../support/docker/task-place.js";

const root = fileURLToPath(new URL("../..", import.meta.url));

describeOwnEngine("a manager that dies", () => {
  test("leaves no container for longer than a second; reap and the next batch sweep the rest, and touch nothing of a live one", async () => {
    const [dead, live] = await Promise.all([hold(), hold()]);
    try {
      expect(await batchCensus(dead.batchId)).toHaveLength(8);
      const forced = await removalByForce();
      const gone = await untilDestroyed(`glovebox.batch=${dead.batchId}`, 4, () => dead.child.kill("SIGKILL"));
      console.log(
        `its 4 containers were gone ${Math.round(gone)} ms after the kill; 2 by force: ${Math.round(forced)} ms`,
      );
      // What the engine itself needs on this machine, now, is not ours.
      expect(gone).toBeLessThan(1_000 + 2 * forced);
      const kinds = async (): Promise<unknown> => (await batchCensus(dead.batchId)).map((line) => line.split(" ")[0]);
      expect(await kinds()).toEqual(["network", "network", "image", "image"]);
      const { swept = [] } = await reap({ dryRun: true });
      expect(swept).toHaveLength(4);
      expect(await kinds()).toEqual(["network", "network", "image", "image"]);
      expect(new Set((await reap()).swept)).toEqual(new Set(swept));
      expect(await batchCensus(dead.batchId)).toEqual([]);
      expect(await batchCensus(live.batchId)).toHaveLength(8);
    } finally {
      await untilDestroyed(`glovebox.batch=${live.batchId}`, 4, () => live.child.kill("SIGKILL"));
    }
    const manager = createSandboxManager();
    await using batch = await manager.setupBatch([]);
    expect(await batchCensus(live.batchId)).toEqual([]);
    const task = await batch.setupTask(taskOf("next"));
    expect(await manager.exec(task.state.agentContainerId, "echo on")).toMatchObject({ stdout: "on\n" });
  });
});

/** How long the engine takes for two containers on a network when it is told to. */
async function removalByForce(): Promise<number> {
  await using batch = await createSandboxManager().setupBatch([]);
  const { state } = await batch.setupTask(taskOf("measure", [box("db")]));
  const ids = [state.agentContainerId, ...Object.values(state.serviceContainers)];
  return await untilDestroyed(`glovebox.batch=${batch.batchId}`, ids.length, () =>
    Promise.all(ids.map((id) => askEngine("DELETE", `/containers/${id}`, { force: true }))),
  );
}

async function hold(): Promise<{ child: ChildProcess; batchId: string }> {
  const script = fileURLToPath(new URL("../children/hold-task.mjs", import.meta.url));
  const child = spawn(process.execPath, [script, root, BUSYBOX], { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
    text += chunk;
    if (text.includes("\n")) break;
  }
  return { child, batchId: (JSON.parse(text) as { batchId: string }).batchId };
}
