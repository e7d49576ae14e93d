import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { Agent, get } from "node:http";
import { connect, createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { createLocalSandbox } from "../../dist/src/index.js";
import { goal, interleave, p50, row } from "../parts/measure.mjs";

const SERVER = fileURLToPath(new URL("../parts/port-server.mjs", import.meta.url));
const INSIDE = [3000, 3001, 3002];
const AT_ONCE = 200;
const RELAYS = ["direct", "bare relay", "glovebox"];

/** Requests and bytes to a server in a sandbox without network, against the same server on this machine and a bare relay to it. */
export async function measure({ isQuick }) {
  const sandbox = await createLocalSandbox();
  const host = await startHere();
  const relays = await Promise.all(host.ports.map(openBareRelay));
  try {
    await sandbox.writeFile("server.mjs", await readFile(SERVER));
    await sandbox.spawn({ argv: ["node", "server.mjs", ...INSIDE.map(String)] });
    for (const port of INSIDE) await sandbox.waitForPort(port, { timeout: 30_000 });
    const urls = await Promise.all(INSIDE.map((port) => sandbox.url(port)));
    const ours = urls.map((url) => Number(new URL(url).port));
    const ports = { direct: host.ports, "bare relay": relays.map(({ port }) => port), glovebox: ours };
    return await measureAll(ports, isQuick);
  } finally {
    for (const { server } of relays) server.close();
    host.child.kill();
    await sandbox.teardown();
  }
}

async function measureAll(ports, isQuick) {
  const agents = Object.fromEntries(RELAYS.map((name) => [name, new Agent({ keepAlive: true, maxSockets: 1 })]));
  const each = (work) => Object.fromEntries(RELAYS.map((name) => [name, () => work(name)]));
  const rounds = isQuick ? 50 : 400;
  const kept = await interleave(
    each((name) => request(ports[name][0], agents[name])),
    { rounds, warmup: 50 },
  );
  const fresh = await interleave(
    each((name) => request(ports[name][0], false)),
    { rounds, warmup: 50 },
  );
  const bytes = (isQuick ? 64 : 256) << 20;
  const [down, up] = [
    await interleave(
      each((name) => rate(bytes, () => receive(ports[name][1], bytes))),
      { rounds: isQuick ? 3 : 9 },
    ),
    await interleave(
      each((name) => rate(bytes, () => send(ports[name][2], bytes))),
      { rounds: isQuick ? 3 : 9 },
    ),
  ];
  const many = await interleave(
    each((name) => Promise.all(Array.from({ length: AT_ONCE }, () => request(ports[name][0], false)))),
    { rounds: isQuick ? 3 : 15 },
  );
  for (const agent of Object.values(agents)) agent.destroy();

  const rowsOf = (what, samples, unit) => RELAYS.map((name) => row(`${name}, ${what}`, samples[name], unit));
  const tables = [
    rowsOf("request", kept),
    rowsOf("request on a new connection", fresh),
    rowsOf("bytes from the server", down, "MB/s"),
    rowsOf("bytes to the server", up, "MB/s"),
    rowsOf(`${AT_ONCE} connections at once`, many),
  ];
  const added = (what, samples, [, floor, ours]) =>
    goal(what, { value: p50(samples.glovebox) - p50(samples.direct), unit: "ms", atMost: 1, ours, floor });
  return {
    rows: tables.flat(),
    goals: [
      added("what a relayed port adds to a request", kept, tables[0]),
      added("what it adds to a request on a new connection", fresh, tables[1]),
      goal("bytes from a server in the sandbox", {
        ...{ value: p50(down.glovebox), unit: "MB/s", atLeast: 300 },
        ...{ ours: tables[2][2], floor: tables[2][1] },
      }),
      goal("bytes to a server in the sandbox", {
        ...{ value: p50(up.glovebox), unit: "MB/s", atLeast: 300 },
        ...{ ours: tables[3][2], floor: tables[3][1] },
      }),
    ],
    notes: [`all of the ${AT_ONCE} connections at once were served, in every round`],
  };
}

async function startHere() {
  const child = spawn(process.execPath, [SERVER, "0", "0", "0"], { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await once(child.stdout, "data");
  return { child, ports: line.toString().trim().split(" ").map(Number) };
}

/** The least that a relay in this process can do: it checks nothing, and crosses no namespace. */
async function openBareRelay(port) {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const behind = connect({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
    for (const socket of [client, behind]) socket.on("error", () => undefined);
    client.pipe(behind).pipe(client);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, port: server.address().port };
}

function request(port, agent) {
  return new Promise((resolve, reject) => {
    get({ host: "127.0.0.1", port, agent }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk) => {
        text += chunk;
      });
      response.on("end", () => (text === "a small answer\n" ? resolve() : reject(new Error(`it answered ${text}`))));
    }).on("error", reject);
  });
}

async function receive(port, bytes) {
  const socket = connect({ port, host: "127.0.0.1" });
  socket.write(String(bytes));
  let count = 0;
  socket.on("data", ({ length }) => {
    count += length;
  });
  await once(socket, "close");
  if (count !== bytes) throw new Error(`${count} bytes came instead of ${bytes}`);
}

async function send(port, bytes) {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  const piece = Buffer.alloc(256 << 10, "x");
  for (let left = bytes; left > 0; left -= piece.length) if (!socket.write(piece)) await once(socket, "drain");
  socket.end();
  const [answer] = await once(socket, "data");
  socket.destroy();
  if (Number(answer.toString()) !== bytes) throw new Error(`${answer} bytes came instead of ${bytes}`);
}

async function rate(bytes, work) {
  const began = performance.now();
  await work();
  return bytes / 1e3 / (performance.now() - began);
}
