import { strict as assert } from "node:assert";
import { createSandboxManager, SandboxError, type TaskSetup } from "glovebox";

// Any image with a shell, wget and httpd.
const tag = process.env["GLOVEBOX_EXAMPLE_IMAGE"] ?? "busybox:1.36";

// #region setup
const setup: TaskSetup = {
  taskId: "shop-42",
  agentContainer: { name: "agent", spec: { imageSpec: { type: "pull", tag } } },
  serviceContainers: {
    shop: {
      name: "shop",
      spec: {
        imageSpec: { type: "pull", tag },
        hostname: "shop.local",
        environment: { GREETING: "welcome" },
        command: 'mkdir -p /srv && echo "$GREETING" > /srv/index.html && exec httpd -f -p 80 -h /srv',
        waitFor: { port: 80, timeout: 30_000 },
      },
    },
  },
};
// #endregion setup

// #region run
const manager = createSandboxManager({ onEvent: ({ type, message }) => console.log(`${type}: ${message}`) });
await using batch = await manager.setupBatch([setup]);
await using task = await batch.setupTask(setup);

const page = await manager.exec(task.state.agentContainerId, "wget -qO- http://shop.local/", { timeout: 10_000 });
assert.equal(page.stdout, "welcome\n");
// #endregion run

// #region sandbox
await task.agent.writeFile("/tmp/plan.txt", "buy one\n");
await task.services["shop"]?.writeFile("/srv/stock.txt", "9 left\n");
assert.equal((await task.agent.exec({ argv: ["wget", "-qO-", "http://shop.local/stock.txt"] })).stdout, "9 left\n");
assert.equal(task.status("shop").running, true);
// #endregion sandbox

// #region clone
await using clone = await manager.cloneSandboxState(task.state);
await clone.services["shop"]?.writeFile("/srv/stock.txt", "sold out\n");

const stock = async (id: string): Promise<string> => (await manager.exec(id, "wget -qO- shop.local/stock.txt")).stdout;
assert.equal(await stock(clone.state.agentContainerId), "sold out\n");
assert.equal(await stock(task.state.agentContainerId), "9 left\n");
assert.equal(await clone.agent.readFile("/tmp/plan.txt"), "buy one\n");
// #endregion clone

// #region failure
const broken: TaskSetup = {
  taskId: "broken",
  agentContainer: setup.agentContainer,
  serviceContainers: {
    db: {
      name: "db",
      spec: { imageSpec: { type: "pull", tag }, command: "echo no config; exit 1", waitFor: { port: 5432 } },
    },
  },
};
await assert.rejects(batch.setupTask(broken), (error: unknown) => {
  assert(error instanceof SandboxError);
  return error.message.includes("exit code 1") && error.message.includes("no config");
});
// #endregion failure

await batch.teardown();
console.log("served, cloned, told what was broken");
