import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { createDockerSandbox } from "../../dist/src/index.js";
import { findEndpoint } from "../../dist/src/sandbox/backends/docker/engine/endpoint.js";
import { Engine } from "../../dist/src/sandbox/backends/docker/engine/engine.js";
import { packDirectory } from "../../dist/src/util/tar/tar-pack.js";
import { startEngine, stopEngine, whyNoEngine } from "../../scripts/docker-engine.mjs";
import { BUSYBOX, ensureImage, whyNoImage } from "../../scripts/docker-images.mjs";
import { goal, interleave, p50, ratioGoal, row, timed } from "../parts/measure.mjs";
import { openDockerode } from "../parts/peers.mjs";
import { start } from "../parts/processes.mjs";

const IN_A_ROW = 5;
const IN_FLIGHT = 16;
const FILES = 1_000;
const FLOOD = 113;
let shared;

/** Commands, files and output of a container through the guest, against the engine's own API. */
export async function measure({ isQuick, withPeers }) {
  const reason = whyNoEngine() ?? whyNoImage(BUSYBOX);
  if (reason !== undefined) return { rows: [], goals: [], notes: [`not run: ${reason}`] };
  const place = await mkdtemp(join(tmpdir(), "bench-docker-"));
  const engine = await startEngine(join(place, "engine"));
  try {
    await ensureImage(engine.host, BUSYBOX);
    process.env.DOCKER_HOST = engine.host;
    const sandbox = await createDockerSandbox({ image: BUSYBOX });
    try {
      const client = withPeers ? await openDockerode(engine.host, `glovebox-${sandbox.id}`) : undefined;
      return await measureIn(sandbox, join(place, "files"), isQuick, client);
    } finally {
      await sandbox.teardown();
    }
  } finally {
    await stopEngine(engine);
    await rm(place, { recursive: true, force: true });
  }
}

async function measureIn(sandbox, folder, isQuick, client) {
  const container = `glovebox-${sandbox.id}`;
  const variants = {
    "glovebox, true": async () => expectZero((await sandbox.exec({ argv: ["true"] })).exitCode),
    "engine's exec calls, true": async () => expectZero(await execByEngine(container)),
    ...(client && { "dockerode, true": client.exec }),
    "docker exec, true": () => start("docker", ["exec", container, "true"]),
  };
  const turns = Object.entries(variants).map(([name, work]) => [name, () => middleOf(work)]);
  const rows = rowsOf(await interleave(Object.fromEntries(turns), { rounds: isQuick ? 10 : 40 }));
  const peer = client ? "dockerode" : "engine's exec calls";
  const many = rowsOf(
    await interleave(
      {
        [`glovebox, ${IN_FLIGHT} at once`]: () => all(() => variants["glovebox, true"]()),
        [`${peer}, ${IN_FLIGHT} at once`]: () => all(() => variants[`${peer}, true`]()),
      },
      { rounds: isQuick ? 5 : 15 },
    ),
  );
  const files = await filesIn(sandbox, container, folder, { isQuick, client });
  const flood = await floodOf(sandbox);
  const single = rows.find(({ variant }) => variant === `${peer}, true`);
  return {
    rows: [...rows, ...many, ...files, flood],
    goals: [
      ratioGoal(`exec of true, ${peer} against glovebox`, { ours: single, other: rows[0], atLeast: 30 }),
      ratioGoal(`${IN_FLIGHT} in flight, ${peer} against glovebox`, { ours: many[1], other: many[0], atLeast: 20 }),
      ratioGoal(`${FILES} small files against putArchive`, { ours: files[0], other: files[1], atMost: 0.6 }),
      goal(`memory while ${FLOOD} MB go to a slow reader`, { value: flood.p50, unit: "MB", atMost: 64, ours: flood }),
    ],
    ...(!client && { notes: ["dockerode is measured with --peers"] }),
  };
}

/** One client for all calls, as in a real program. */
function engineOf() {
  shared ??= new Engine(findEndpoint());
  return shared;
}

/** What every client of the engine does to run a command: three calls, one of them a raw stream. */
async function execByEngine(container) {
  const engine = engineOf();
  const body = { Cmd: ["true"], AttachStdout: true, AttachStderr: true };
  const { Id } = await engine.call("POST", `/containers/${container}/exec`, { body });
  const socket = await engine.hijack(`/exec/${Id}/start`, {
    body: { Detach: false, Tty: false },
    headers: { "Content-Type": "application/json" },
  });
  socket.resume();
  await new Promise((resolve) => socket.once("close", resolve));
  return (await engine.call("GET", `/exec/${Id}/json`)).ExitCode;
}

/** New files in a new directory every time: replacing a file costs more than making one. */
async function filesIn(sandbox, container, folder, { isQuick, client }) {
  await mkdir(folder, { recursive: true });
  const content = Buffer.alloc(1024, "x");
  const names = Array.from({ length: FILES }, (_, i) => `f${i}`);
  for (const name of names) await writeFile(join(folder, name), content);
  const variants = {
    "glovebox, uploadFiles": (round) =>
      sandbox.uploadFiles(names.map((name) => ({ path: `upload${round}/${name}`, content }))),
    putArchive: async (round) => {
      await sandbox.makeDirectory(`put${round}`);
      const path = `${sandbox.workDir}/put${round}`;
      const query = { path };
      if (client) return void (await client.putArchive(Readable.from(packDirectory(folder)), path));
      return await engineOf().call("PUT", `/containers/${container}/archive`, { query, body: packDirectory(folder) });
    },
    "glovebox, refreshFromHost": (round) => sandbox.refreshFromHost(folder, `refresh${round}`),
  };
  return rowsOf(await interleave(variants, { rounds: isQuick ? 3 : 10 }));
}

/** The peak growth of this process's memory while it slowly reads a command's large output. */
async function floodOf(sandbox) {
  const before = process.memoryUsage().rss;
  let most = 0;
  let pieces = 0;
  const argv = ["dd", "if=/dev/zero", "bs=1M", `count=${FLOOD}`];
  await sandbox.exec({
    argv,
    maxOutput: 0,
    async onStdout() {
      if (++pieces % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
      most = Math.max(most, process.memoryUsage().rss - before);
    },
  });
  return row(`glovebox, ${FLOOD} MB into a slow reader`, [most / 1e6], "MB");
}

/** Several in a row: the engine stays busy for a while after its own command, which must not slow the next variant down. */
async function middleOf(work) {
  const times = [];
  for (let i = 0; i < IN_A_ROW; i++) times.push(await timed(work));
  return p50(times);
}

function all(work) {
  return timed(() => Promise.all(Array.from({ length: IN_FLIGHT }, work)));
}

function rowsOf(samples) {
  return Object.entries(samples).map(([variant, taken]) => row(variant, taken));
}

function expectZero(exitCode) {
  if (exitCode !== 0) throw new Error(`it ended with ${exitCode}`);
}
