import { execFile } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import type { IncomingMessage, RequestOptions, ServerResponse } from "node:http";
import { createServer, request } from "node:https";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { NetworkEvent } from "../../../contracts/types.js";
import { makeAuthority } from "../../../src/sandbox/egress/authority.js";
import type { Rewriting } from "../../../src/sandbox/egress/forward.js";
import { blockedHost, Refusal } from "../../../src/sandbox/egress/refusal.js";
import { Traffic } from "../../../src/sandbox/egress/traffic/traffic.js";
import { type Certificate, createCertificate } from "../../support/egress/certificate.js";
import { openTunnel } from "../../support/egress/origin.js";
import { listen, type RunningProxy, startProxy } from "../../support/egress/running-proxy.js";
import { createScratch, type Scratch } from "../../support/scratch.js";

const run = promisify(execFile);
const NAME = "inspected.test";
const VALUE = "the-real-value";

const authority = makeAuthority([NAME]);
let scratch: Scratch;
let certificate: Certificate;
let origin: {
  port: number;
  close(): void;
  sockets: Set<Socket>;
  requests: { url: string; key: unknown; body: string }[];
};
let proxy: RunningProxy;

/** Puts a value in the place of a placeholder, and takes it out of the answer. */
const changes: Rewriting = {
  ofRequest: async ({ path, headers }) => ({
    path,
    headers: headers.map(([name, value]) => [name, value.replace("placeholder", VALUE)]),
    body: async function* (pieces) {
      yield Buffer.from((await text(pieces)).replaceAll("placeholder", VALUE));
    },
  }),
  ofHeaders: (headers) => headers.map(([name, value]) => [name, value.replace(VALUE, "masked")]),
  ofBody: () =>
    async function* (pieces) {
      for await (const piece of pieces) yield Buffer.from(piece.toString().replaceAll(VALUE, "masked"));
    },
};

beforeAll(async () => {
  scratch = createScratch();
  certificate = createCertificate(scratch.path, [NAME]);
  const seen = { sockets: new Set<Socket>(), requests: [] as { url: string; key: unknown; body: string }[] };
  const answer = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { url = "", headers } = incoming;
    seen.requests.push({ url, key: headers["x-api-key"], body: await text(incoming) });
    response.setHeader("X-Reflected", headers["x-api-key"] ?? "none");
    response.end(`you sent ${headers["x-api-key"] ?? "nothing"}`);
  };
  const server = createServer(certificate, (incoming, response) => void answer(incoming, response));
  server.on("secureConnection", (socket: Socket) => seen.sockets.add(socket));
  server.on("upgrade", (incoming: IncomingMessage, socket: Socket) => {
    socket.on("error", () => undefined);
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    socket.write(`hello ${incoming.headers["x-api-key"]} `);
    socket.once("data", (data: Buffer) => socket.end(data));
  });
  origin = { port: await listen(server), close: () => server.close(), ...seen };
  proxy = await start();
});

/** A proxy that looks at requests to the origin, for programs that know it or, with `direct`, don't. */
async function start(direct?: { port: number }): Promise<RunningProxy> {
  return await startProxy([`${NAME}:${origin.port}`], {
    names: { [NAME]: "127.0.0.1" },
    ...(direct && { direct }),
    inspector: {
      inspectionOf: (host, port) => ({
        context: authority.contextFor(host),
        ca: [certificate.cert.toString()],
        check({ method, path }) {
          if (method === "DELETE" || path.startsWith("/private"))
            throw new Refusal(403, "no rule allows that", blockedHost(host, port, "request_not_allowed"));
        },
        changesOf: () => changes,
      }),
    },
  });
}

const startDirect = (): Promise<RunningProxy> => start({ port: origin.port });

afterAll(async () => {
  await proxy[Symbol.asyncDispose]();
  for (const socket of origin.sockets) socket.destroy();
  origin.close();
  scratch.remove();
});

/** A TLS connection through the proxy that trusts the sandbox's authority alone. */
async function open(opts: { servername?: string } = {}): Promise<TLSSocket> {
  const socket = await openTunnel(proxy.port, `${NAME}:${origin.port}`);
  const { servername = NAME } = opts;
  const secured = connectTls({ socket, servername, ca: authority.certificate });
  await once(secured, "secureConnect");
  return secured;
}

async function send(tls: TLSSocket, opts: RequestOptions, body = ""): Promise<{ status?: number; body: string }> {
  const headers = { Host: `${NAME}:${origin.port}`, Connection: "keep-alive", ...opts.headers };
  const outgoing = request({ createConnection: () => tls, ...opts, headers });
  outgoing.end(body);
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  const reflected = response.headers["x-reflected"] ?? "";
  return { status: response.statusCode ?? 0, body: `${reflected}|${await text(response)}` };
}

test("a value is put into requests, in headers and bodies, and taken out of answers", async () => {
  const tls = await open();
  const answer = await send(tls, { method: "POST", headers: { "X-Api-Key": "placeholder" } }, "a placeholder here");
  expect(answer).toEqual({ status: 200, body: "masked|you sent masked" });
  expect(origin.requests.at(-1)).toMatchObject({ key: VALUE, body: `a ${VALUE} here` });
  tls.destroy();
});

test("a program that believes to be at the host has its requests looked at, too", async () => {
  const direct = await startDirect();
  const socket = connect({ port: direct.port, host: "127.0.0.1" });
  const tls = connectTls({ socket, servername: NAME, ca: authority.certificate });
  await once(tls, "secureConnect");
  expect(await send(tls, { headers: { "X-Api-Key": "placeholder" } })).toEqual({
    status: 200,
    body: "masked|you sent masked",
  });
  expect(origin.requests.at(-1)).toMatchObject({ key: VALUE });
  const before = origin.requests.length;
  expect(await send(tls, { method: "DELETE" })).toMatchObject({ status: 403 });
  expect(origin.requests.length).toBe(before);
  tls.destroy();
  await direct[Symbol.asyncDispose]();
});

test("one connection serves many requests, and needs one to the origin", async () => {
  const before = origin.sockets.size;
  const tls = await open();
  for (const url of ["/1", "/2", "/3"]) expect(await send(tls, { path: url })).toMatchObject({ status: 200 });
  expect(origin.requests.slice(-3).map(({ url }) => url)).toEqual(["/1", "/2", "/3"]);
  expect(origin.sockets.size - before).toBe(1);
  tls.destroy();
});

test("a request after the origin has closed the connection gets another one", async () => {
  const tls = await open();
  const known = new Set(origin.sockets);
  expect(await send(tls, { path: "/1" })).toMatchObject({ status: 200 });
  const own = [...origin.sockets].filter((socket) => !known.has(socket));
  for (const socket of own) socket.end();
  await Promise.all(own.filter((socket) => !socket.destroyed).map((socket) => once(socket, "close")));
  expect(await send(tls, { path: "/2" })).toMatchObject({ status: 200 });
  tls.destroy();
});

test("a request that the rules do not allow is answered, and never reaches the origin", async () => {
  const before = { requests: origin.requests.length, sockets: origin.sockets.size };
  const tls = await open();
  const answer = await send(tls, { method: "DELETE" });
  expect(answer).toMatchObject({ status: 403, body: expect.stringContaining("no rule allows that") });
  expect([origin.requests.length, origin.sockets.size]).toEqual([before.requests, before.sockets]);
  expect(proxy.blocked).toContainEqual({ host: NAME, port: origin.port, reason: "request_not_allowed" });
  tls.destroy();
});

test.each([
  ["another Host", "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"],
  ["no Host", "GET / HTTP/1.1\r\n\r\n"],
  ["two Hosts", `GET / HTTP/1.1\r\nHost: ${NAME}\r\nHost: evil.test\r\n\r\n`],
  ["a whole address", `GET https://${NAME}/ HTTP/1.1\r\nHost: ${NAME}\r\n\r\n`],
  ["another whole address", `GET https://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n`],
  ["CONNECT", `CONNECT ${NAME}:22 HTTP/1.1\r\nHost: ${NAME}:22\r\n\r\n`],
  ["a fragment", `GET /#/private HTTP/1.1\r\nHost: ${NAME}\r\n\r\n`],
  ["HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
  ["two lengths", `POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n`],
  ["a length and chunks", `POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`],
  ["a folded header", `GET / HTTP/1.1\r\nHost: HOST\r\nX: 1\r\n folded\r\n\r\n`],
])("a request with %s is refused", async (_, message) => {
  const before = origin.requests.length;
  const tls = await open();
  tls.write(message.replace("HOST", `${NAME}:${origin.port}`));
  expect(await text(tls)).toMatch(/^HTTP\/1\.1 400 /);
  expect(origin.requests.length).toBe(before);
});

test("a hello for another name gets no answer", async () => {
  await expect(open({ servername: "evil.test" })).rejects.toThrow();
  expect(proxy.blocked).toContainEqual({ host: "evil.test", port: origin.port, reason: "name_mismatch" });
});

test("a program that trusts another authority is reported, and nothing falls back", async () => {
  const before = origin.sockets.size;
  const curl = run("curl", [
    ...["-sS", "-x", `http://127.0.0.1:${proxy.port}`, "--cacert", certificate.path],
    `https://${NAME}:${origin.port}/`,
  ]);
  await expect(curl).rejects.toThrow(/certificate/);
  await expect.poll(() => proxy.blocked).toContainEqual({ host: NAME, port: origin.port, reason: "not_trusted" });
  expect(origin.sockets.size).toBe(before);
});

test.each<[string, (port: number) => Promise<unknown>]>([
  [
    "curl",
    (port) => {
      const file = join(scratch.path, "authority.pem");
      writeFileSync(file, authority.certificate);
      const pin = ["--pinnedpubkey", `sha256//${Buffer.alloc(32).toString("base64")}`];
      const flags = ["-sS", "-x", `http://127.0.0.1:${port}`, "--cacert", file, ...pin];
      return run("curl", [...flags, `https://${NAME}:${origin.port}/`]);
    },
  ],
  [
    "Node",
    async (port) => {
      const checkServerIdentity = (): Error => new Error("another certificate");
      const socket = await openTunnel(port, `${NAME}:${origin.port}`);
      const tls = connectTls({ socket, servername: NAME, ca: authority.certificate, checkServerIdentity });
      await once(tls, "secureConnect").finally(() => socket.destroy());
    },
  ],
])("a program that pins another certificate, by %s, is reported, and nothing falls back", async (_, ask) => {
  await using own = await start();
  const before = origin.sockets.size;
  await expect(ask(own.port)).rejects.toThrow(/pinned|another certificate/);
  await expect.poll(() => own.blocked).toEqual([{ host: NAME, port: origin.port, reason: "no_request" }]);
  expect(origin.sockets.size).toBe(before);
});

test("an origin with a certificate of another authority gets no request", async () => {
  const before = origin.requests.length;
  const inspector = {
    inspectionOf: (host: string) => ({
      context: authority.contextFor(host),
      ca: undefined,
      check: () => undefined,
      changesOf: () => changes,
    }),
  };
  await using strict = await startProxy([`${NAME}:${origin.port}`], { names: { [NAME]: "127.0.0.1" }, inspector });
  const socket = await openTunnel(strict.port, `${NAME}:${origin.port}`);
  const tls = connectTls({ socket, servername: NAME, ca: authority.certificate });
  const answer = await send(tls, { headers: { "X-Api-Key": "placeholder" } });
  expect(answer).toMatchObject({ status: 502, body: expect.stringContaining("DEPTH_ZERO_SELF_SIGNED_CERT") });
  expect(origin.requests.length).toBe(before);
});

test("requests are written down with the names of the secrets that are put into them, before they are sent", async () => {
  const events: NetworkEvent[] = [];
  const requestsThen: number[] = [];
  const write = (event: NetworkEvent): void => {
    events.push(event);
    requestsThen.push(origin.requests.length);
  };
  const traffic = new Traffic("a-sandbox", { audit: { write, close: () => undefined } });
  await using own = await startProxy([`${NAME}:${origin.port}`], {
    names: { [NAME]: "127.0.0.1" },
    traffic,
    inspector: {
      inspectionOf: (host) => ({
        context: authority.contextFor(host),
        ca: [certificate.cert.toString()],
        check: () => undefined,
        changesOf: (method, useSecret) => ({
          ...changes,
          ofRequest: async (request) => {
            if (method === "POST") useSecret("API_KEY");
            return await changes.ofRequest(request);
          },
        }),
      }),
    },
  });
  const before = origin.requests.length;
  const socket = await openTunnel(own.port, `${NAME}:${origin.port}`);
  const tls = connectTls({ socket, servername: NAME, ca: authority.certificate });
  await send(tls, { path: "/a?query" });
  await send(tls, { method: "POST", headers: { "X-Api-Key": "placeholder" } }, "body");
  tls.destroy();
  await expect.poll(() => events.length).toBe(4);
  expect(events.map(({ event, method, secrets }) => [event, method, secrets])).toEqual([
    ["open", undefined, undefined],
    ["request", "GET", undefined],
    ["request", "POST", ["API_KEY"]],
    ["close", undefined, ["API_KEY"]],
  ]);
  expect(requestsThen.map((count) => count - before)).toEqual([0, 0, 1, 2]);
  expect(JSON.stringify(events)).not.toMatch(/the-real-value|placeholder|query/);
});

test("a WebSocket passes, with the value in its request", async () => {
  const tls = await open();
  const head = `GET /socket HTTP/1.1\r\nHost: ${NAME}:${origin.port}\r\nX-Api-Key: placeholder`;
  tls.write(`${head}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
  const [first] = (await once(tls, "data")) as [Buffer];
  tls.write("ping");
  expect(`${first}${await text(tls)}`).toMatch(/^HTTP\/1\.1 101 [\s\S]*\r\n\r\nhello the-real-value ping$/);
});
