import { execFile } from "node:child_process";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { connect, createServer as createTcpServer, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { connect as connectTls } from "node:tls";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Certificate, createCertificate } from "../../support/egress/certificate.js";
import { type Origin, openTunnel, startOrigin } from "../../support/egress/origin.js";
import { listen, type RunningProxy, startProxy, talk } from "../../support/egress/running-proxy.js";
import { createScratch, type Scratch } from "../../support/scratch.js";

const run = promisify(execFile);
const NAME = "allowed.test";

let scratch: Scratch;
let certificate: Certificate;
let origin: Origin;
let secure: { port: number; close(): void; names: unknown[] };
let proxy: RunningProxy;

beforeAll(async () => {
  scratch = createScratch();
  certificate = createCertificate(scratch.path, [NAME, "other.test"]);
  origin = await startOrigin();
  const names: unknown[] = [];
  const tlsServer = createTlsServer(certificate, (_incoming, response) => response.end("hello in secret"));
  tlsServer.on("secureConnection", (socket) => names.push(socket.servername));
  tlsServer.on("tlsClientError", () => undefined);
  secure = { port: await listen(tlsServer), close: () => tlsServer.close(), names };
  proxy = await startProxy([`${NAME}:${origin.port}`, `${NAME}:${secure.port}`], { names: { [NAME]: "127.0.0.1" } });
});

afterAll(async () => {
  await proxy[Symbol.asyncDispose]();
  origin.close();
  secure.close();
  scratch.remove();
});

/** Sends a request for an address to the proxy, as programs that were told of a proxy do. */
async function viaProxy(
  path: string,
  opts: { method?: string; headers?: Record<string, string>; body?: readonly string[] } = {},
): Promise<{ status: number | undefined; headers: IncomingMessage["headers"]; body: string }> {
  const host = `${NAME}:${origin.port}`;
  const outgoing = request({
    host: "127.0.0.1",
    port: proxy.port,
    method: opts.method ?? "GET",
    path: `http://${host}${path}`,
    headers: { Host: host, ...opts.headers },
    agent: false,
  });
  for (const piece of opts.body ?? []) outgoing.write(piece);
  outgoing.end();
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  return { status: response.statusCode, headers: response.headers, body: await text(response) };
}

describe("a plain request", () => {
  test("reaches its origin, with the path alone and without what concerned the proxy", async () => {
    const headers = {
      "Proxy-Authorization": "Basic c2VjcmV0",
      Connection: "X-Mine, close",
      "X-Mine": "1",
      "X-Kept": "2",
    };
    const answer = await viaProxy("/a/b?c=d", { headers });
    expect(answer).toMatchObject({ status: 200, body: "hello GET    " });
    const seen = origin.requests.at(-1);
    expect(seen?.url).toBe("/a/b?c=d");
    expect(seen?.headers).toMatchObject({ host: `${NAME}:${origin.port}`, "x-kept": "2", connection: "close" });
    expect(Object.keys(seen?.headers ?? {})).not.toContain("proxy-authorization");
    expect(Object.keys(seen?.headers ?? {})).not.toContain("x-mine");
  });

  test("has its body passed on, of known length or in chunks", async () => {
    await viaProxy("/", { method: "POST", headers: { "Content-Length": "11" }, body: ["hello ", "there"] });
    expect(origin.bodies.at(-1)).toBe("hello there");
    expect(origin.requests.at(-1)?.headers["content-length"]).toBe("11");
    await viaProxy("/", { method: "PUT", headers: { "Transfer-Encoding": "chunked" }, body: ["hello ", "again"] });
    expect(origin.bodies.at(-1)).toBe("hello again");
    await viaProxy("/", { method: "POST", headers: { "Content-Length": "0" } });
    expect(origin.requests.at(-1)?.headers["content-length"]).toBe("0");
  });

  test("gets answers without a body, in chunks, and without what concerned the origin's connection", async () => {
    expect(await viaProxy("/", { method: "HEAD" })).toMatchObject({ status: 200, body: "" });
    expect(await viaProxy("/empty")).toMatchObject({ status: 204, body: "" });
    const chunks = await viaProxy("/chunks");
    expect(chunks).toMatchObject({ status: 200, body: "one two" });
    expect(chunks.headers["connection"]).toBe("close");
    expect(Object.keys(chunks.headers)).not.toContain("x-private");
  });

  test("of an old client is answered up to the end of the connection", async () => {
    const answer = await talk(proxy.port, `GET http://${NAME}:${origin.port}/chunks HTTP/1.0\r\n\r\n`);
    expect(answer).toMatch(/\r\n\r\none two$/);
    expect(answer).not.toMatch(/transfer-encoding/i);
  });

  test("that waits for a go-ahead gets it", async () => {
    const { stdout } = await run("curl", [
      ...["-sS", "-x", `http://127.0.0.1:${proxy.port}`, "-H", "Expect: 100-continue", "--expect100-timeout", "50"],
      ...["-d", "data", `http://${NAME}:${origin.port}/`],
    ]);
    expect(stdout).toBe("hello POST   ");
    expect(origin.bodies.at(-1)).toBe("data");
  });

  test("whose origin breaks off is not taken for a whole one", async () => {
    await expect(viaProxy("/torn")).rejects.toThrow(/aborted/);
  });

  test("is the only one of its connection", async () => {
    const before = origin.requests.length;
    const one = `GET http://${NAME}:${origin.port}/ HTTP/1.1\r\nHost: ${NAME}:${origin.port}\r\n\r\n`;
    const answer = await talk(proxy.port, one + one);
    expect(answer.match(/HTTP\/1\.1/g)).toHaveLength(1);
    expect(answer).toMatch(/\r\nConnection: close\r\n/);
    expect(origin.requests.length - before).toBe(1);
  });
});

describe("a tunnel", () => {
  test("carries TLS to the host it names", async () => {
    const socket = await openTunnel(proxy.port, `${NAME}:${secure.port}`);
    const tls = connectTls({ socket, servername: NAME, ca: certificate.cert });
    tls.write(`GET / HTTP/1.1\r\nHost: ${NAME}\r\nConnection: close\r\n\r\n`);
    expect(await text(tls)).toContain("hello in secret");
    expect(secure.names.at(-1)).toBe(NAME);
  });

  test("serves curl, which follows no redirect to a host that is not allowed", async () => {
    const common = ["-sS", "-x", `http://127.0.0.1:${proxy.port}`, "--cacert", certificate.path];
    const { stdout } = await run("curl", [...common, `https://${NAME}:${secure.port}/`]);
    expect(stdout).toBe("hello in secret");
    const lookups = proxy.lookups.length;
    const moved = await run("curl", [...common, "-L", "-w", "%{http_code}", `http://${NAME}:${origin.port}/elsewhere`]);
    expect(moved.stdout).toMatch(
      /does not allow evil\.test:80\nto allow it: network: \{ allow: \["evil\.test"\] \} in code, --network allow=evil\.test in a shell\n403$/,
    );
    expect(proxy.lookups.slice(lookups)).toEqual([NAME]);
    const refused = await run("curl", [...common, `https://evil.test:${secure.port}/`]).catch((error: Error) => error);
    expect(String(refused)).toMatch(/response 403/);
  });

  test("keeps its second half when the first is closed", async () => {
    const server = createTcpServer({ allowHalfOpen: true }, (socket) => {
      let heard = "";
      socket.on("data", (chunk) => {
        heard += chunk;
      });
      socket.on("end", () => socket.end(`heard ${heard}`));
    });
    const port = await listen(server);
    await using own = await startProxy([`plain://${NAME}:${port}`], { names: { [NAME]: "127.0.0.1" } });
    const answer = await talk(own.port, `CONNECT ${NAME}:${port} HTTP/1.1\r\n\r\nall of this`);
    expect(answer).toBe("HTTP/1.1 200 Connection established\r\n\r\nheard all of this");
    server.close();
  });

  test("keeps its first half when the second is closed", async () => {
    const heard: Promise<string>[] = [];
    const server = createTcpServer({ allowHalfOpen: true }, (socket) => {
      socket.end("say on");
      heard.push(text(socket));
    });
    const port = await listen(server);
    await using own = await startProxy([`plain://${NAME}:${port}`], { names: { [NAME]: "127.0.0.1" } });
    const client = connect({ port: own.port, host: "127.0.0.1", allowHalfOpen: true });
    client.write(`CONNECT ${NAME}:${port} HTTP/1.1\r\n\r\n`);
    client.resume();
    await once(client, "end");
    client.end("much more");
    expect(await heard[0]).toBe("much more");
    server.close();
  });

  test("lets the server speak first", async () => {
    const server = createTcpServer((socket) => socket.end("220 ready"));
    const port = await listen(server);
    await using own = await startProxy([`plain://${NAME}:${port}`], { names: { [NAME]: "127.0.0.1" } });
    const answer = await talk(own.port, `CONNECT ${NAME}:${port} HTTP/1.1\r\n\r\n`, { keepOpen: true });
    expect(answer).toMatch(/220 ready$/);
    server.close();
  });

  test("ends at the origin when the program is gone, and in the program when the origin is", async () => {
    const accepted: Socket[] = [];
    const server = createTcpServer((socket) => accepted.push(socket.on("error", () => undefined)));
    const port = await listen(server);
    await using own = await startProxy([`plain://${NAME}:${port}`], { names: { [NAME]: "127.0.0.1" } });
    const first = await openTunnel(own.port, `${NAME}:${port}`);
    first.resetAndDestroy();
    await once(accepted[0] as Socket, "close");
    const second = await openTunnel(own.port, `${NAME}:${port}`);
    const ended = new Promise((resolve) => void second.on("error", () => undefined).once("close", resolve));
    accepted[1]?.resetAndDestroy();
    await ended;
    server.close();
  });
});

test("the proxy is closed with everything in it, and stays so", async () => {
  const server = createTcpServer((socket) => socket.on("error", () => undefined));
  const port = await listen(server);
  const own = await startProxy([`plain://${NAME}:${port}`], { names: { [NAME]: "127.0.0.1" } });
  const tunnels = await Promise.all([1, 2, 3].map(() => openTunnel(own.port, `${NAME}:${port}`)));
  const silent = connect({ port: own.port, host: "127.0.0.1" });
  await once(silent, "connect");
  const ended = Promise.all(
    [...tunnels, silent].map((socket) =>
      once(
        socket.on("error", () => undefined),
        "close",
      ),
    ),
  );
  await own.proxy.close();
  expect(own.proxy.connections).toBe(0);
  await ended;
  expect(await talk(own.port, `CONNECT ${NAME}:${port} HTTP/1.1\r\n\r\n`)).toBe("");
  await own[Symbol.asyncDispose]();
  server.close();
});
