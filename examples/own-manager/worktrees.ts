import { randomUUID } from "node:crypto";
import {
  type Batch,
  type ManagerOptions,
  openSandbox,
  type Sandbox,
  SandboxError,
  type SandboxManager,
  shellQuote,
  type Task,
} from "glovebox";

// #region manager
/** Runs tasks without services in sandboxes of this machine. */
export function createManager({ batchIdPrefix = "worktrees", networkEnabled = false }: ManagerOptions): SandboxManager {
  const tasks = new Map<string, Task>();

  const find = (id: string): Task => {
    const task = tasks.get(id);
    if (task === undefined) throw new SandboxError("not_found", `There is no container "${id}"`);
    return task;
  };
  const toTask = (taskId: string, agent: Sandbox, executionId: string): Task => {
    const state = { taskId, agentContainerId: agent.id, serviceContainers: {}, executionId };
    const teardown = async (): Promise<void> => {
      tasks.delete(agent.id);
      await agent.teardown();
    };
    const status = (): { running: boolean; logs: string } => ({ running: false, logs: "" });
    const task = { taskId, state, agent, services: {}, status, teardown, [Symbol.asyncDispose]: teardown };
    tasks.set(agent.id, task);
    return task;
  };
  const setupTask: SandboxManager["setupTask"] = async ({ taskId, serviceContainers = {} }) => {
    if (Object.keys(serviceContainers).length > 0) throw new SandboxError("unsupported", "There are no services here");
    const agent = await openSandbox({ backend: "local", network: networkEnabled ? "full" : "none" });
    return toTask(taskId, agent, randomUUID());
  };
  return {
    setupTask,
    async setupBatch(): Promise<Batch> {
      const teardown = async (): Promise<void> => {
        await Promise.all([...tasks.values()].map((task) => task.teardown()));
      };
      return { batchId: `${batchIdPrefix}-${randomUUID()}`, setupTask, teardown, [Symbol.asyncDispose]: teardown };
    },
    async exec(id, cmd, opts = {}) {
      return await find(id).agent.shell(typeof cmd === "string" ? cmd : shellQuote(cmd), opts);
    },
    async cloneSandboxState({ agentContainerId }) {
      const { agent, taskId, state } = find(agentContainerId);
      return toTask(taskId, await agent.fork(), state.executionId);
    },
  };
}
// #endregion manager
