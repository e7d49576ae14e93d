// Sets up a task with a service in a cluster, says the ids of its containers, and waits to be killed.
const [, , directory, text] = process.argv;
const { createSandboxManager } = await import(`${directory}/src/index.js`);

const { kubernetes, image } = JSON.parse(text);
const imageSpec = { type: "pull", tag: image };
const setup = {
  taskId: "held",
  agentContainer: { name: "agent", spec: { imageSpec } },
  serviceContainers: { db: { name: "db", spec: { imageSpec, command: ["sleep", "600"] } } },
};
const batch = await createSandboxManager({ backend: "kubernetes", kubernetes }).setupBatch([setup]);
const { state } = await batch.setupTask(setup);
console.log(JSON.stringify([state.agentContainerId, ...Object.values(state.serviceContainers)]));
setInterval(() => undefined, 60_000);
