import { mkdtemp, rm } from "node:fs/promises";
import http from "node:http";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSandboxManager } from "../../dist/src/index.js";
import { findEndpoint } from "../../dist/src/sandbox/backends/docker/engine/endpoint.js";
import { Engine } from "../../dist/src/sandbox/backends/docker/engine/engine.js";
import { startEngine, stopEngine, whyNoEngine } from "../../scripts/docker-engine.mjs";
import { BUSYBOX, ensureImage, whyNoImage } from "../../scripts/docker-images.mjs";
import { goal, ratioGoal, row, timed } from "../parts/measure.mjs";

const NAMES = ["agent", "one", "two"];
let calls = 0;
let unique = 0;

/** Starting, cloning and removing a task of one container and two services: against the fewest calls and against the usual ones. */
export async function measure({ isQuick }) {
  const reason = whyNoEngine() ?? whyNoImage(BUSYBOX);
  if (reason !== undefined) return { rows: [], goals: [], notes: [`not run: ${reason}`] };
  countCalls();
  const place = await mkdtemp(join(tmpdir(), "bench-tasks-"));
  const started = await startEngine(join(place, "engine"));
  try {
    await ensureImage(started.host, BUSYBOX);
    process.env.DOCKER_HOST = started.host;
    return await compare(isQuick ? 3 : 10);
  } finally {
    await stopEngine(started);
    await rm(place, { recursive: true, force: true });
  }
}

async function compare(rounds) {
  const engine = new Engine(findEndpoint());
  const manager = createSandboxManager();
  const batch = await manager.setupBatch([]);
  const variants = {
    glovebox: () => ours(manager, batch),
    "fewest calls": () => lean(engine),
    "usual calls": () => usual(engine),
  };
  const samples = {};
  for (let round = -1; round < rounds; round++) {
    for (const [name, run] of Object.entries(variants)) {
      // Stopping takes ten seconds each time, so two rounds are enough.
      if (name === "usual calls" && round >= 2) continue;
      const { up, clone, down } = await run();
      if (round < 0) continue;
      for (const [step, result] of Object.entries({ up, clone, down })) {
        const key = `${name}, ${step}`;
        samples[key] ??= { times: [], calls: [] };
        samples[key].times.push(result.time);
        samples[key].calls.push(result.calls);
      }
    }
  }
  await batch.teardown();
  engine.close();
  const rows = {};
  for (const [name, { times, calls: counts }] of Object.entries(samples)) {
    rows[name] = row(name, times);
    rows[`${name}, calls`] = row(`${name}, calls of the engine`, counts, "calls");
  }
  const steps = ["up", "clone", "down"];
  return {
    rows: Object.values(rows),
    goals: [
      ...steps.map((step) =>
        ratioGoal(`task ${step} against the fewest calls`, {
          ours: rows[`glovebox, ${step}`],
          other: rows[`fewest calls, ${step}`],
          atMost: 1.3,
        }),
      ),
      ...steps.map((step) =>
        goal(`calls of the engine for a task ${step}`, {
          value: rows[`glovebox, ${step}, calls`].p50,
          unit: "calls",
          atMost: rows[`fewest calls, ${step}, calls`].p50,
          ours: rows[`glovebox, ${step}, calls`],
        }),
      ),
      ratioGoal("task down, stop and then remove against glovebox", {
        ours: rows["usual calls, down"],
        other: rows["glovebox, down"],
        atLeast: 10,
      }),
    ],
  };
}

async function ours(manager, batch) {
  const container = (name) => ({
    name,
    spec: { imageSpec: { type: "pull", tag: BUSYBOX }, command: ["sleep", "infinity"] },
  });
  const setup = {
    taskId: "bench",
    agentContainer: { name: "agent", spec: { imageSpec: { type: "pull", tag: BUSYBOX } } },
    serviceContainers: { one: container("one"), two: container("two") },
  };
  let task;
  const up = await counted(async () => {
    task = await batch.setupTask(setup);
  });
  let copy;
  const clone = await counted(async () => {
    copy = await manager.cloneSandboxState(task.state);
  });
  const down = await counted(() => Promise.all([task.teardown(), copy.teardown()]));
  return { up, clone, down };
}

/**
 * The fewest calls that meet the contract: a network, and for each container creating it, attaching a connection that ends it
 * with us, and starting it. A clone: committing all at once, and the same again.
 */
async function lean(engine) {
  const group = async (images) => {
    const network = await createNetwork(engine);
    const ids = await Promise.all(
      NAMES.map(async (name, index) => {
        const { Id } = await create(engine, images[index], network, name);
        const socket = await engine.hijack(`/containers/${Id}/attach`, {
          query: { stream: true, stdin: true, stdout: true },
        });
        socket.resume().on("error", () => undefined);
        await engine.call("POST", `/containers/${Id}/start`);
        return Id;
      }),
    );
    return { network, ids };
  };
  let first;
  const up = await counted(async () => {
    first = await group(NAMES.map(() => BUSYBOX));
  });
  let second;
  const images = NAMES.map(() => `bench-clone:${process.pid}-${unique++}`);
  const clone = await counted(async () => {
    await Promise.all(first.ids.map((id, index) => commit(engine, id, images[index], true)));
    second = await group(images);
  });
  const remove = async ({ network, ids }, tags) => {
    await Promise.all(ids.map((id) => engine.call("DELETE", `/containers/${id}`, { query: { force: true, v: true } })));
    await Promise.all([
      engine.call("DELETE", `/networks/${network}`),
      ...tags.map((tag) => engine.call("DELETE", `/images/${tag}`)),
    ]);
  };
  const down = await counted(() => Promise.all([remove(first, []), remove(second, images)]));
  return { up, clone, down };
}

/** The usual way: one container after the other, inspected twice, stopped and then removed. */
async function usual(engine) {
  const one = async (image, network, name) => {
    const { Id } = await create(engine, image, network, name);
    await engine.call("POST", `/containers/${Id}/start`);
    await engine.call("GET", `/containers/${Id}/json`);
    await engine.call("GET", `/containers/${Id}/json`);
    return Id;
  };
  const group = async (images) => {
    const network = await createNetwork(engine);
    const agent = await one(images[0], network, NAMES[0]);
    return { network, ids: [agent, ...(await Promise.all([1, 2].map((n) => one(images[n], network, NAMES[n]))))] };
  };
  let first;
  const up = await counted(async () => {
    first = await group(NAMES.map(() => BUSYBOX));
  });
  let second;
  const images = NAMES.map(() => `bench-clone:${process.pid}-${unique++}`);
  const clone = await counted(async () => {
    for (const [index, id] of first.ids.entries()) await commit(engine, id, images[index], true);
    second = await group(images);
  });
  const down = await counted(async () => {
    await Promise.all(
      [...first.ids, ...second.ids].map(async (id) => {
        await engine.call("POST", `/containers/${id}/stop`);
        await engine.call("DELETE", `/containers/${id}`);
      }),
    );
    await Promise.all([
      ...images.map((tag) => engine.call("DELETE", `/images/${tag}`, { query: { force: true } })),
      ...[first, second].map(({ network }) => engine.call("DELETE", `/networks/${network}`)),
    ]);
  });
  return { up, clone, down };
}

async function createNetwork(engine) {
  const number = unique++;
  const subnet = `10.99.${Math.floor(number / 16) % 256}.${(number % 16) * 16}/28`;
  const body = { Name: `bench-${process.pid}-${number}`, Internal: true, IPAM: { Config: [{ Subnet: subnet }] } };
  return (await engine.call("POST", "/networks/create", { body })).Id;
}

function create(engine, image, network, name) {
  const body = {
    Image: image,
    Cmd: ["sleep", "infinity"],
    OpenStdin: true,
    StdinOnce: true,
    HostConfig: { NetworkMode: network, LogConfig: { Type: "none" } },
    NetworkingConfig: { EndpointsConfig: { [network]: { Aliases: [name] } } },
  };
  return engine.call("POST", "/containers/create", { body });
}

function commit(engine, container, image, pause) {
  const [repo, tag] = image.split(":");
  return engine.call("POST", "/commit", { query: { container, repo, tag, pause }, body: {} });
}

async function counted(work) {
  const before = calls;
  const time = await timed(work);
  return { time, calls: calls - before };
}

function countCalls() {
  const { request } = http;
  http.request = (...args) => {
    calls++;
    return request(...args);
  };
  syncBuiltinESMExports();
}
