import { appendFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { readBatch, runBatch } from "../../dist/src/batch.js";
import { openSandbox } from "../../dist/src/index.js";
import { findEndpoint } from "../../dist/src/sandbox/backends/docker/engine/endpoint.js";
import { Engine } from "../../dist/src/sandbox/backends/docker/engine/engine.js";
import { startEngine, stopEngine, whyNoEngine } from "../../scripts/docker-engine.mjs";
import { BUSYBOX, ensureImage, whyNoImage } from "../../scripts/docker-images.mjs";
import { goal, ratioGoal, row, timed } from "../parts/measure.mjs";
import { start } from "../parts/processes.mjs";

const FINISHED = 10_000;
const AT_ONCE = 8;

/** A batch against the same calls one after the other, the memory of its driver, and how fast a killed one goes on. */
export async function measure({ isQuick, scratch }) {
  const place = await mkdtemp(join(tmpdir(), "bench-batch-"));
  try {
    const local = await onLocal(place, isQuick);
    const memory = await memoryOfDriver(place, isQuick ? 100 : 500);
    const resumed = await resume(place);
    const docker = await onDocker(place, isQuick, scratch);
    return {
      rows: [...local.rows, ...memory.rows, ...resumed.rows, ...docker.rows],
      goals: [...local.goals, ...memory.goals, ...resumed.goals, ...docker.goals],
      notes: docker.notes,
    };
  } finally {
    await rm(place, { recursive: true, force: true });
  }
}

/**
 * The parts of each are as long as each other and take turns, because the machine gets slower and faster. The floor is
 * what a task takes if no core ever waits: tasks can only run at once in the time in which the serial ones leave cores idle.
 */
async function onLocal(place, isQuick) {
  const [rounds, each] = isQuick ? [2, 50] : [4, 250];
  const serial = [];
  const batch = [];
  const busy = [];
  await oneByOne(20, "local");
  for (let round = 0; round < rounds; round++) {
    const before = busyTime();
    serial.push((await timed(() => oneByOne(each, "local"))) / each);
    busy.push((busyTime() - before) / each / cpus().length);
    batch.push((await timed(() => inBatch(join(place, `local-${round}`), each, { backend: "local" }))) / each);
  }
  const ours = row("local, a task of a batch", batch);
  const other = row("local, open, exec and teardown, one after the other", serial);
  const floor = row("local, processor time of open, exec and teardown, over all cores", busy);
  return {
    rows: [ours, other, floor],
    goals: [ratioGoal(`${rounds * each} tasks of batches on local`, { ours, other, atMost: 0.5, floor })],
  };
}

/** For how many milliseconds the cores of this machine have worked so far. */
function busyTime() {
  return cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0);
}

async function oneByOne(count, backend) {
  for (let n = 0; n < count; n++) {
    const sandbox = await openSandbox({ backend });
    await sandbox.exec({ argv: ["true"] });
    await sandbox.teardown();
  }
}

async function inBatch(out, count, options) {
  const tasks = Array.from({ length: count }, (_, n) => ({ id: `t${n}`, run: ["true"] }));
  let passed = 0;
  for await (const { outcome } of runBatch({ tasks, out, ...options })) if (outcome === "passed") passed += 1;
  if (passed !== count) throw new Error(`${passed} of ${count} tasks passed`);
}

/** In a process of its own, whose memory is nothing else's. */
async function memoryOfDriver(place, count) {
  const program = `
    const { runBatch } = await import(${JSON.stringify(new URL("../../dist/src/batch.js", import.meta.url).href)});
    const tasks = Array.from({ length: ${count} }, (_, n) => ({ id: "t" + n, run: ["sleep", "600"] }));
    const stop = new AbortController();
    const open = new Set();
    const onStage = (id, stage) => {
      if (stage === "running") open.add(id);
      if (open.size === ${count} && !stop.signal.aborted) {
        console.log(process.memoryUsage.rss());
        stop.abort();
      }
    };
    for await (const _ of runBatch({ tasks, out: ${JSON.stringify(join(place, "memory"))}, backend: "local",
      concurrency: ${count}, signal: stop.signal, onStage })) continue;
  `;
  const { stdout } = await start(process.execPath, ["--input-type=module", "-e", program]);
  const used = row(`driver with ${count} open sandboxes`, [Number(stdout) / 1e6], "MB");
  return {
    rows: [used],
    goals: [goal(`memory of a driver with ${count} open sandboxes`, { value: used.p50, unit: "MB", atMost: 150 })],
  };
}

/** Writes down that everything is finished, and takes the batch up again. */
async function resume(place) {
  const out = join(place, "resumed");
  const tasks = Array.from({ length: FINISHED }, (_, n) => ({ id: `t${n}`, run: ["true"] }));
  const stopped = AbortSignal.abort();
  for await (const _ of runBatch({ tasks, out, backend: "local", signal: stopped })) throw new Error("it was stopped");
  let end = 0;
  const results = [];
  const records = [];
  for (const { id } of tasks) {
    const result = `${JSON.stringify({ taskId: id, attempt: 1, outcome: "passed", exitCode: 0, stdout: `${id}\n` })}\n`;
    end += Buffer.byteLength(result);
    results.push(result);
    records.push(record({ t: "started", task: id, attempt: 1, resource: "0123456789abcdef" }));
    records.push(record({ t: "finished", task: id, attempt: 1, outcome: "passed", ms: 5, end }));
  }
  appendFileSync(join(out, "results.jsonl"), results.join(""));
  appendFileSync(join(out, "journal.jsonl"), records.join(""));
  const { passed } = await readBatch(out);
  if (passed !== FINISHED) throw new Error(`${passed} tasks are finished`);
  const times = [];
  for (let round = 0; round < 5; round++) {
    times.push(
      await timed(async () => {
        for await (const _ of runBatch({ tasks, out, backend: "local" })) throw new Error("all were finished");
      }),
    );
  }
  const taken = row(`taking up ${FINISHED} finished tasks`, times);
  return {
    rows: [taken],
    goals: [goal(`taking up ${FINISHED} finished tasks`, { value: taken.p50, unit: "ms", atMost: 1000 })],
  };
}

function record(value) {
  const body = JSON.stringify(value);
  return `${body.slice(0, -1)},"sum":"${crc32(body).toString(16).padStart(8, "0")}"}\n`;
}

async function onDocker(place, isQuick) {
  const reason = whyNoEngine() ?? whyNoImage(BUSYBOX);
  if (reason !== undefined) return { rows: [], goals: [], notes: [`not run: ${reason}`] };
  const started = await startEngine(join(place, "engine"));
  try {
    await ensureImage(started.host, BUSYBOX);
    process.env.DOCKER_HOST = started.host;
    const [rounds, each] = isQuick ? [1, 24] : [4, 48];
    const options = { backend: "docker", concurrency: AT_ONCE, sandbox: { image: BUSYBOX } };
    await inBatch(join(place, "docker-first"), AT_ONCE, options);
    const ours = [];
    const floor = [];
    const engine = new Engine(findEndpoint());
    for (let round = 0; round < rounds; round++) {
      floor.push((await timed(() => fewestCalls(engine, each))) / each);
      ours.push((await timed(() => inBatch(join(place, `docker-${round}`), each, options))) / each);
    }
    engine.close();
    const batch = row(`Docker, a task of a batch, ${AT_ONCE} at once`, ours);
    const other = row(`Docker, the engine's own create, start, wait and remove, ${AT_ONCE} at once`, floor);
    return {
      rows: [batch, other],
      goals: [ratioGoal("tasks of batches on Docker", { ours: batch, other, atMost: 2 })],
      notes: [],
    };
  } finally {
    await stopEngine(started);
  }
}

/** What the engine itself takes for containers that run `true`. */
async function fewestCalls(engine, count) {
  let next = 0;
  const work = async () => {
    while (next < count) {
      next += 1;
      const body = { Image: BUSYBOX, Cmd: ["true"], HostConfig: { NetworkMode: "none", LogConfig: { Type: "none" } } };
      const { Id } = await engine.call("POST", "/containers/create", { body });
      await engine.call("POST", `/containers/${Id}/start`);
      await engine.call("POST", `/containers/${Id}/wait`);
      await engine.call("DELETE", `/containers/${Id}`, { query: { force: true, v: true } });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}
