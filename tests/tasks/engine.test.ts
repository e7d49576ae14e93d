import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { SandboxError } from "../../contracts/errors.js";
import {
  createContainerManager,
  createSandboxManager,
  type ImageSpec,
  registerManager,
  type SandboxManager,
  type TaskEvent,
  type TaskSetup,
} from "../../src/tasks.js";
import { FolderEngine, VOLUME } from "../fakes/folder-engine.js";
import { expectRefused } from "../support/refused.js";
import { createScratch, type Scratch } from "../support/scratch.js";

let scratch: Scratch;
let engine: FolderEngine;
let events: TaskEvent[];
beforeEach(() => {
  scratch = createScratch();
  engine = new FolderEngine(join(scratch.path, "engine"));
  events = [];
});
afterEach(() => scratch.remove());

const manage = (): SandboxManager =>
  createContainerManager(() => engine, { onEvent: (event) => void events.push(event) });

/** Two stages, each with a file of its own. */
function stages(): ImageSpec {
  const write = (stage: string, path: string): void => {
    mkdirSync(join(scratch.path, stage, path, ".."), { recursive: true });
    writeFileSync(join(scratch.path, stage, path), `${stage}\n`);
  };
  write("base", "base.txt");
  write("top", `${VOLUME}/top.txt`);
  return {
    type: "multi-stage",
    stages: [
      { tag: "top:1", contextPath: join(scratch.path, "top"), parentTag: "base:1" },
      { tag: "base:1", contextPath: join(scratch.path, "base") },
    ],
    finalTag: "top:1",
  };
}

function taskOf(imageSpec: ImageSpec): TaskSetup {
  return {
    taskId: "t",
    agentContainer: { name: "agent", spec: { imageSpec, environment: { WHO: "the agent" } } },
    serviceContainers: {
      db: {
        name: "db",
        spec: { imageSpec, command: "echo up by $FROM_IMAGE; exec sleep 60", waitFor: { log: "up by top:1" } },
      },
    },
  };
}

test("another engine serves a task from its images to its end", async () => {
  registerManager("folders", async () => ({
    createManager: (opts) => createContainerManager(() => engine, opts),
  }));
  const setup = taskOf(stages());
  const manager = createSandboxManager({ backend: "folders", onEvent: (event) => void events.push(event) });
  const batch = await manager.setupBatch([setup]);
  expect(new Set(engine.calls)).toEqual(new Set(["sweep", "build base:1 on nothing", "build top:1 on id-of-base:1"]));
  expect(events.map(({ type, image }) => `${type} ${image}`)).toEqual([
    "image-build base:1",
    "image-ready base:1",
    "image-build top:1",
    "image-ready top:1",
  ]);

  const task = await batch.setupTask(setup);
  const { agentContainerId, serviceContainers, networkId } = task.state;
  const run = async (id: string, script: string): Promise<string> => (await manager.exec(id, script)).stdout;
  expect(await run(agentContainerId, `cat base.txt ${VOLUME}/top.txt; echo $WHO of $FROM_IMAGE`)).toBe(
    "base\ntop\nthe agent of top:1\n",
  );
  expect(task.status("db")).toEqual({ running: true, logs: "up by top:1\n" });
  expect(engine.networks.get(networkId ?? "")).toMatchObject({ internal: true, members: 2 });
  const containers = [...engine.containers.values()].map(({ request }) => request);
  for (const { labels } of [...containers, ...engine.networks.values()]) {
    expect(labels).toEqual({ "glovebox.batch": batch.batchId, "glovebox.execution": task.state.executionId });
  }

  const db = serviceContainers["db"] ?? "";
  await run(db, `echo before > mark; echo before > ${VOLUME}/mark`);
  const clone = await manager.cloneSandboxState(task.state);
  expect(engine.calls.filter((call) => call.startsWith("commit"))).toEqual([
    "commit agent while 2 of 2 are frozen",
    "commit db while 2 of 2 are frozen",
  ]);
  expect(engine.frozen.size).toBe(0);
  const copy = clone.state.serviceContainers["db"] ?? "";
  await run(copy, "echo after > mark");
  expect(await run(copy, `cat mark ${VOLUME}/mark ${VOLUME}/top.txt`)).toBe("after\nbefore\ntop\n");
  expect(await run(db, "cat mark")).toBe("before\n");
  expect(clone.state.networkId).not.toBe(networkId);
  expect(engine.containers.size).toBe(4);

  await task.teardown();
  expect({ containers: engine.containers, networks: engine.networks, images: [...engine.images.keys()] }).toEqual({
    containers: new Map(),
    networks: new Map(),
    images: ["id-of-base:1", "id-of-top:1"],
  });
  await batch.teardown();
  expect(engine.calls.filter((call) => call === "close")).toHaveLength(1);
});

test.each(["network", "start agent", "start db", "commit db", "copy data of db"])(
  "when the engine fails at %s, the error names it and nothing is left",
  async (failOn) => {
    const manager = manage();
    await using batch = await manager.setupBatch([]);
    const setup = taskOf(stages());
    const isClone = !/^(network|start)/.test(failOn);
    const origin = isClone ? await batch.setupTask(setup) : undefined;
    engine.failOn = failOn;
    const failing = origin ? manager.cloneSandboxState(origin.state) : batch.setupTask(setup);
    await expect(failing).rejects.toMatchObject({
      name: "SandboxError",
      backend: "folders",
      message: expect.stringContaining("on fire"),
    });
    expect([engine.containers.size, engine.networks.size, engine.images.size]).toEqual(isClone ? [2, 1, 2] : [0, 0, 2]);
    expect(engine.frozen.size).toBe(0);
  },
);

test("a container that the engine cannot remove is a leak event, and the next teardown removes it", async () => {
  await using batch = await manage().setupBatch([]);
  const task = await batch.setupTask(taskOf(stages()));
  engine.failOn = "remove db";
  await task.teardown();
  expect(events.filter(({ type }) => type === "leak").map(({ message }) => message)).toEqual([
    expect.stringContaining("remove db: the folder is on fire"),
  ]);
  expect(engine.containers.size).toBe(1);
  await task.teardown();
  expect(engine.containers.size).toBe(0);
});

test("an image that the engine does not have fails the batch, which closes the engine", async () => {
  const failing = manage().setupBatch([taskOf({ type: "pull", tag: "none:1" })]);
  await expectRefused(failing, "not_found", "none:1");
  await expect(failing).rejects.toMatchObject({ backend: "folders", operation: "setupBatch" });
  expect(engine.calls).toEqual(["sweep", "close"]);
});

test("settings that are wrong are refused at once", () => {
  expect(() => createContainerManager(() => engine, { concurrency: 0 })).toThrow("concurrency");
  expect(() => createContainerManager(() => engine, { docker: {} } as never)).toThrow("docker");
});

test("an engine says in which order containers start, and what it refuses before anything is made", async () => {
  engine.arrange = (containers) => [
    containers.filter(({ isService }) => isService).map(({ name }) => name),
    containers.filter(({ isService }) => !isService).map(({ name }) => name),
  ];
  const manager = manage();
  await using batch = await manager.setupBatch([]);
  await using _ = await batch.setupTask(taskOf(stages()));
  expect(engine.calls.filter((call) => call.startsWith("start "))).toEqual(["start db", "start agent"]);
  const before = engine.calls.length;
  engine.arrange = ([agent]) => {
    expect(agent?.command).toBeUndefined();
    throw new SandboxError("unsupported", `not ${agent?.hostname}`);
  };
  await expectRefused(batch.setupTask(taskOf(stages())), "unsupported", "not agent");
  expect(engine.calls.slice(before)).toEqual([]);
  expect(engine.networks.size).toBe(1);
});

test("an engine learns whether it matters what an image runs, and is asked again once it does", async () => {
  const imageSpec = stages();
  const manager = manage();
  const { agentContainer } = taskOf(imageSpec);
  const alone = { taskId: "alone", agentContainer };
  await using batch = await manager.setupBatch([alone]);
  expect(engine.asked).toEqual([
    ["base:1", false],
    ["top:1", false],
  ]);
  await using _ = await batch.setupTask(taskOf(imageSpec));
  await using _again = await batch.setupTask(alone);
  expect(engine.asked.slice(2)).toEqual([["top:1", true]]);
});
