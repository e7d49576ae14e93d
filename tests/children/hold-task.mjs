// Sets up a task with a service, clones it, says so, and stays until it is ended.
const [, , root, image] = process.argv;
const { createSandboxManager } = await import(`${root}/dist/src/index.js`);

const imageSpec = { type: "pull", tag: image };
const setup = {
  taskId: "held",
  agentContainer: { name: "agent", spec: { imageSpec } },
  serviceContainers: { db: { name: "db", spec: { imageSpec, command: "sleep 600" } } },
};
const manager = createSandboxManager();
const batch = await manager.setupBatch([setup]);
const task = await batch.setupTask(setup);
await manager.cloneSandboxState(task.state);
console.log(JSON.stringify({ batchId: batch.batchId }));
setInterval(() => undefined, 60_000);
