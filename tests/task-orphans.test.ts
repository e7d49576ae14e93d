import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { BUSYBOX } from "./support/docker-engine.js";
import { batchCensus, describeTasks, taskOf } from "./support/task-place.js";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

describeTasks("a manager that dies", [BUSYBOX], (place) => {
  test("leaves no container, and the rest is swept by the next batch, which touches nothing of a live one", async () => {
    const [dead, live] = await Promise.all([hold(), hold()]);
    try {
      expect(await batchCensus(dead.batchId)).toHaveLength(8);
      dead.child.kill("SIGKILL");
      await once(dead.child, "exit");
      const containers = async (): Promise<string[]> =>
        (await batchCensus(dead.batchId)).filter((line) => line.startsWith("container"));
      await expect.poll(containers, { timeout: 20_000, interval: 50 }).toEqual([]);
      const manager = place.manager();
      await using batch = await manager.setupBatch([]);
      expect(await batchCensus(dead.batchId)).toEqual([]);
      expect(await batchCensus(live.batchId)).toHaveLength(8);
      const task = await batch.setupTask(taskOf("next"));
      expect(await manager.exec(task.state.agentContainerId, "echo on")).toMatchObject({ stdout: "on\n" });
    } finally {
      live.child.kill("SIGKILL");
      await once(live.child, "exit");
      await (await place.manager().setupBatch([])).teardown();
    }
    expect(await batchCensus(live.batchId)).toEqual([]);
  });
});

async function hold(): Promise<{ child: ChildProcess; batchId: string }> {
  const script = fileURLToPath(new URL("./children/hold-task.mjs", import.meta.url));
  const child = spawn(process.execPath, [script, root, BUSYBOX], { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
    text += chunk;
    if (text.includes("\n")) break;
  }
  return { child, batchId: (JSON.parse(text) as { batchId: string }).batchId };
}
