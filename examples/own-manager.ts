import { strict as assert } from "node:assert";
import { createSandboxManager, registerManager } from "glovebox";

// #region register
registerManager("worktrees", () => import("./own-manager/worktrees.js"));

const manager = createSandboxManager({ backend: "worktrees" });
// #endregion register

const setup = {
  taskId: "one",
  agentContainer: { name: "agent", spec: { imageSpec: { type: "pull", tag: "none" } as const } },
};
await using batch = await manager.setupBatch([setup]);
await using task = await batch.setupTask(setup);
await manager.exec(task.state.agentContainerId, "echo first > mark");
await using clone = await manager.cloneSandboxState(task.state);
await manager.exec(clone.state.agentContainerId, "echo second > mark");
assert.equal(await task.agent.readFile("mark"), "first\n");
assert.equal(await clone.agent.readFile("mark"), "second\n");
console.log("a manager of its own ran a task and its clone");
