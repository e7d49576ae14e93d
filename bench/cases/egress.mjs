import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { Agent, createServer as createHttps, request } from "node:https";
import { createServer } from "node:net";
import { join } from "node:path";
import { connect, createServer as createTls } from "node:tls";
import { pathToFileURL } from "node:url";
import { rolldown } from "rolldown";
import { goal, interleave, p50, ratioGoal, row } from "../parts/measure.mjs";

const NAME = "api.bench.test";
const KEY = "BENCH_API_KEY";
const AT_ONCE = 200;
const WAYS = ["direct", "bare relay", "glovebox"];
const MIB = 1 << 20;

/** Requests with a secret through the proxy of a sandbox, against the same server without it, and behind a relay that only ends and starts TLS. */
export async function measure({ isQuick, scratch }) {
  const parts = await loadParts(scratch);
  process.env[KEY] = "the-real-value-0123456789";
  const authority = parts.makeAuthority([NAME]);
  const context = authority.contextFor(NAME);
  const origin = await startOrigin(context);
  const relay = await startBareRelay(context, origin.port, authority.certificate);
  const own = await startGlovebox(parts, authority, origin.port);
  const ca = authority.certificate;
  const at = {
    direct: () => connect({ port: origin.port, host: "127.0.0.1", servername: NAME, ca }),
    "bare relay": () => connect({ port: relay.port, host: "127.0.0.1", servername: NAME, ca }),
    glovebox: async () => connect({ socket: await own.tunnel(), servername: NAME, ca }),
  };
  try {
    return await measureAll(at, own.headers, origin, isQuick);
  } finally {
    for (const server of [origin, relay, own]) server.close();
    delete process.env[KEY];
  }
}

async function measureAll(at, headers, origin, isQuick) {
  const agents = Object.fromEntries(WAYS.map((name) => [name, agentOver(at[name])]));
  const each = (work) => Object.fromEntries(WAYS.map((name) => [name, () => work(name)]));
  const ask = (agent) => exchange({ agent, headers, method: "GET", path: "/" });
  const askOnce = async (name) => {
    const agent = agentOver(at[name]);
    await ask(agent);
    agent.destroy();
  };
  const kept = await interleave(
    each((name) => ask(agents[name])),
    { rounds: isQuick ? 50 : 400, warmup: 20 },
  );
  await ask(agents.glovebox);
  if (origin.lastKey !== process.env[KEY]) throw new Error("the server did not get the value");
  const bytes = (isQuick ? 32 : 256) * MIB;
  const rounds = isQuick ? 3 : 9;
  const down = await interleave(
    each((name) => rate(bytes, () => exchange({ agent: agents[name], headers, method: "GET", path: `/${bytes}` }))),
    { rounds },
  );
  const up = await interleave(
    each((name) => rate(bytes, () => exchange({ agent: agents[name], headers, method: "POST", path: "/", bytes }))),
    { rounds },
  );
  const many = await interleave(
    each((name) => Promise.all(Array.from({ length: AT_ONCE }, () => askOnce(name)))),
    { rounds },
  );
  const large = (isQuick ? 128 : 1024) * MIB;
  const agent = agents.glovebox;
  const memory = await growthDuring(async () => {
    await exchange({ agent, headers, method: "GET", path: `/${large}` });
    await exchange({ agent, headers, method: "POST", path: "/", bytes: large });
  });
  for (const each of Object.values(agents)) each.destroy();

  const rowsOf = (what, samples, unit) => WAYS.map((name) => row(`${name}, ${what}`, samples[name], unit));
  const tables = [
    rowsOf("request with a secret", kept),
    rowsOf("bytes from the server", down, "MB/s"),
    rowsOf("bytes to the server", up, "MB/s"),
    rowsOf(`${AT_ONCE} connections at once`, many),
  ];
  const [requests, received, sent] = tables;
  const half = (what, [, other, ours]) => ratioGoal(what, { ours, other, atLeast: 0.5 });
  return {
    rows: tables.flat(),
    goals: [
      goal("what a secret adds to a request", {
        ...{ value: p50(kept.glovebox) - p50(kept.direct), unit: "ms", atMost: 3 },
        ...{ ours: requests[2], floor: requests[1] },
      }),
      half("bytes from a server that may repeat a secret", received),
      half("bytes to a server, searched for a placeholder", sent),
      goal(`memory for ${large / MIB} MiB each way`, { value: memory / MIB, unit: "MiB", atMost: 128 }),
    ],
    notes: [`all of the ${AT_ONCE} connections at once were served, in every round`],
  };
}

/** The proxy of a sandbox has no option that leads to this machine, so the bench takes its parts. */
async function loadParts(scratch) {
  const sources = ["authority", "proxy", "policy", "secrets", "inspect/create-inspector"];
  const input = Object.fromEntries(
    sources.map((name) => [
      name.replace("/", "-"),
      new URL(`../../src/sandbox/egress/${name}.ts`, import.meta.url).pathname,
    ]),
  );
  const dir = join(scratch, "egress");
  const build = await rolldown({ input, platform: "node", logLevel: "silent" });
  await build.write({ dir, entryFileNames: "[name].mjs", chunkFileNames: "parts/[name].mjs" });
  const loaded = await Promise.all(
    Object.keys(input).map((name) => import(pathToFileURL(join(dir, `${name}.mjs`)).href)),
  );
  return Object.assign({}, ...loaded);
}

/** Answers with as many bytes as its path says, after it has read everything. */
async function startOrigin(secureContext) {
  const piece = Buffer.alloc(256 << 10, "x");
  const state = { lastKey: undefined };
  const answer = async (incoming, response) => {
    state.lastKey = incoming.headers["x-api-key"];
    incoming.resume();
    await once(incoming, "end");
    const wanted = Number(incoming.url.slice(1)) || 15;
    response.setHeader("Content-Length", wanted);
    for (let left = wanted; left > 0; left -= piece.length) {
      if (!response.write(piece.subarray(0, left))) await once(response, "drain");
    }
    response.end();
  };
  const context = { SNICallback: (_, done) => done(null, secureContext) };
  const server = createHttps(context, (incoming, response) => void answer(incoming, response));
  const port = await listen(server);
  return {
    port,
    get lastKey() {
      return state.lastKey;
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** The least that can be between both: it checks nothing. */
async function startBareRelay(secureContext, origin, ca) {
  const open = new Set();
  const server = createTls({ SNICallback: (_, done) => done(null, secureContext) }, (client) => {
    const behind = connect({ port: origin, host: "127.0.0.1", servername: NAME, ca });
    for (const socket of [client, behind]) {
      open.add(socket);
      socket.on("error", () => undefined);
    }
    client.pipe(behind).pipe(client);
  });
  const port = await listen(server);
  return {
    port,
    close() {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}

async function startGlovebox({ EgressProxy, parseAllow, createInspector, openSecrets }, authority, origin) {
  const hosts = [`${NAME}:${origin}`];
  const secrets = await openSecrets(
    { [KEY]: { hosts, header: "x-api-key" }, BENCH_BODY: { hosts, in: "body", from: { env: KEY } } },
    { visible: [], network: () => "none" },
  );
  const policy = parseAllow(hosts);
  const inspector = createInspector({
    ...{ authority: () => authority, policy: () => policy, broker: secrets.broker, ca: [authority.certificate] },
  });
  const route = { lookup: async () => ["127.0.0.1"], isReachable: () => true };
  const proxy = new EgressProxy({ policy, inspector, onBlocked: () => undefined }, { route });
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => proxy.accept(toConnection(socket)));
  const port = await listen(server);
  return {
    headers: { Host: `${NAME}:${origin}`, "x-api-key": secrets.env[KEY] },
    async tunnel() {
      const asked = httpRequest({
        host: "127.0.0.1",
        port,
        method: "CONNECT",
        path: `${NAME}:${origin}`,
        agent: false,
      });
      asked.end();
      const [, socket] = await once(asked, "connect");
      return socket;
    },
    close() {
      void proxy.close();
      server.close();
      secrets.close();
    },
  };
}

function toConnection(socket) {
  socket.on("error", () => undefined);
  return {
    input: socket.iterator({ destroyOnReturn: false }),
    write: (chunk) =>
      new Promise((resolve, reject) => socket.write(chunk, (error) => (error ? reject(error) : resolve()))),
    end: () => new Promise((resolve) => socket.end(resolve)),
    destroy: () => socket.destroy(),
  };
}

function agentOver(open) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  agent.createConnection = (_, created) => {
    void Promise.resolve(open()).then((socket) => created(null, socket), created);
  };
  return agent;
}

async function exchange({ agent, headers, method, path, bytes = 0 }) {
  const framing = bytes > 0 ? { "Content-Length": bytes } : {};
  const asked = request({ agent, host: NAME, method, path, headers: { ...headers, ...framing } });
  const answered = once(asked, "response");
  const piece = Buffer.alloc(256 << 10, "x");
  for (let left = bytes; left > 0; left -= piece.length) {
    if (!asked.write(piece.subarray(0, left))) await once(asked, "drain");
  }
  asked.end();
  const [response] = await answered;
  let count = 0;
  for await (const chunk of response) count += chunk.length;
  const wanted = Number(path.slice(1)) || 15;
  if (response.statusCode !== 200 || count !== wanted) throw new Error(`${response.statusCode}, ${count} bytes`);
}

/** By how many bytes the memory outside the heap grew at most. */
async function growthDuring(work) {
  const now = () => process.memoryUsage().arrayBuffers;
  const before = now();
  let most = before;
  const watch = setInterval(() => {
    most = Math.max(most, now());
  }, 5);
  await work();
  clearInterval(watch);
  return most - before;
}

async function rate(bytes, work) {
  const began = performance.now();
  await work();
  return bytes / 1e3 / (performance.now() - began);
}

async function listen(server) {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server.address().port;
}
