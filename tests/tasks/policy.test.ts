import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { ContainerRequest } from "../../contracts/container-engine.js";
import { createContainerManager, type ImageSpec, type SandboxManager, type TaskSetup } from "../../src/tasks.js";
import { FolderEngine } from "../fakes/folder-engine.js";
import { setEnv } from "../support/environment.js";
import { createScratch, type Scratch } from "../support/scratch.js";

let scratch: Scratch;
let engine: FolderEngine;
let restore: () => void;
beforeEach(() => {
  scratch = createScratch();
  engine = new FolderEngine(join(scratch.path, "engine"));
  restore = setEnv({ GLOVEBOX_POLICY: undefined });
});
afterEach(() => {
  restore();
  scratch.remove();
});

function decree(text: string): void {
  const path = join(scratch.path, "policy.yaml");
  writeFileSync(path, `${text}\n`, { mode: 0o600 });
  process.env["GLOVEBOX_POLICY"] = path;
}

const manage = (networkEnabled = false): SandboxManager => createContainerManager(() => engine, { networkEnabled });
const task = (more: object = {}): TaskSetup => ({
  taskId: "t",
  agentContainer: { name: "agent", spec: { imageSpec: { type: "pull", tag: "node:22" }, ...more } },
  serviceContainers: { db: { name: "db", spec: { imageSpec: { type: "pull", tag: "redis:7" }, command: "sleep 60" } } },
});
/** The engine of these tests pulls nothing. */
function builtTask(limits: object): TaskSetup {
  const contextPath = join(scratch.path, "context");
  mkdirSync(contextPath, { recursive: true });
  const imageSpec: ImageSpec = { type: "build", tag: "built:1", contextPath };
  return {
    taskId: "t",
    agentContainer: { name: "agent", spec: { imageSpec, limits } },
    serviceContainers: { db: { name: "db", spec: { imageSpec, command: "exec sleep 60" } } },
  };
}
const forbidden = (rule: string): object => ({
  code: "permission_denied",
  message: expect.stringContaining(`forbids it (rule ${rule})`) as string,
});

test.each<[string, TaskSetup, boolean, string]>([
  ["backends: [local]", task(), false, "backends"],
  ["images: ['node:*']", task(), false, "images"],
  ["images: ['**']", task({ imageSpec: { type: "build", tag: "x:1", contextPath: "/nonexistent" } }), false, "images"],
  ["network: none", task(), true, "network"],
  ["network: none", { ...task(), networkConfig: { name: "n", internal: false } }, true, "network"],
  ["limits: { pids: 10 }", task({ limits: { pids: 11 } }), false, "limits.pids"],
])("a batch that breaks a policy is refused before the engine is asked: %s", async (rule, setup, isOpen, name) => {
  decree(rule);
  await expect(manage(isOpen).setupBatch([setup])).rejects.toMatchObject(forbidden(name));
  expect(engine.calls).toEqual(["close"]);
});

test("a task and a clone of it are refused by a policy that came after the batch", async () => {
  const manager = manage();
  const batch = await manager.setupBatch([builtTask({})]);
  try {
    const made = await manager.setupTask(builtTask({}));
    decree("backends: [local]");
    await expect(manager.setupTask(builtTask({}))).rejects.toMatchObject(forbidden("backends"));
    await expect(manager.cloneSandboxState(made.state)).rejects.toMatchObject(forbidden("backends"));
  } finally {
    await batch.teardown();
  }
});

test("every container gets the limits that it does not ask for", async () => {
  const asked: Record<string, unknown> = {};
  const start = engine.startContainer.bind(engine);
  engine.startContainer = (request: ContainerRequest) => {
    asked[request.hostname] = request.limits;
    return start(request);
  };
  decree("limits: { memory: 1g, pids: { max: 100, default: 50 } }");
  const manager = manage();
  const batch = await manager.setupBatch([builtTask({ pids: 70 })]);
  try {
    await manager.setupTask(builtTask({ pids: 70 }));
    expect(asked).toEqual({ agent: { memory: 2 ** 30, pids: 70 }, db: { memory: 2 ** 30, pids: 50 } });
  } finally {
    await batch.teardown();
  }
});
