import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { parseAllow } from "../../../src/sandbox/egress/policy.js";
import { EgressProxy } from "../../../src/sandbox/egress/proxy.js";
import { openTunnel } from "../../support/egress/origin.js";
import { listen, startProxy, statusOf, talk } from "../../support/egress/running-proxy.js";

const NAME = "allowed.test";
const names = { [NAME]: "127.0.0.1" };
const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** A server that does this with each connection. */
async function serve(take: (socket: Socket) => void): Promise<number> {
  const server = createServer((socket) => take(socket.on("error", () => undefined)));
  servers.push(server);
  return await listen(server);
}

const get = (port: number): string => `GET http://${NAME}:${port}/ HTTP/1.1\r\nHost: ${NAME}:${port}\r\n\r\n`;

describe("a program that takes its time", () => {
  test("over the head of a request gets no more of it, however little it sends at once", async () => {
    await using proxy = await startProxy([NAME], { limits: { head: 200 } });
    const socket = connect({ port: proxy.port, host: "127.0.0.1" });
    const drip = setInterval(() => socket.write("x"), 5);
    const [answer] = (await once(socket, "data")) as [Buffer];
    clearInterval(drip);
    socket.destroy();
    expect(statusOf(answer.toString())).toBe(408);
  });

  test("is never asked for more while it has not yet answered", async () => {
    let [waiting, most] = [0, 0];
    const next = async (): Promise<IteratorResult<Uint8Array, undefined>> => {
      most = Math.max(most, ++waiting);
      await new Promise((resolve) => setTimeout(resolve, 5));
      waiting--;
      return { done: false, value: Buffer.from("x") };
    };
    const proxy = new EgressProxy(
      { policy: parseAllow([]), onBlocked: () => undefined },
      { limits: { head: 50, linger: 100 } },
    );
    const answer: Uint8Array[] = [];
    await new Promise<void>((destroy) => {
      proxy.accept({
        input: { [Symbol.asyncIterator]: () => ({ next }) },
        write: async (chunk) => void answer.push(chunk),
        end: async () => undefined,
        destroy,
      });
    });
    expect(statusOf(Buffer.concat(answer).toString())).toBe(408);
    expect(most).toBe(1);
  });

  test("in a tunnel is cut off when nothing moves", async () => {
    const port = await serve(() => undefined);
    await using proxy = await startProxy([`plain://${NAME}:${port}`], { names, limits: { idle: 100 } });
    const tunnel = await openTunnel(proxy.port, `${NAME}:${port}`);
    await once(
      tunnel.resume().on("error", () => undefined),
      "close",
    );
    expect(proxy.proxy.connections).toBe(0);
  });
});

test("a program that leaves before the answer takes its request and its place with it", async () => {
  const asked: Socket[] = [];
  const port = await serve((socket) => void asked.push(socket.resume()));
  await using proxy = await startProxy([`${NAME}:${port}`], { names, limits: { head: 200 } });
  const program = connect(proxy.port, "127.0.0.1");
  program.write(get(port));
  await expect.poll(() => asked.length).toBe(1);
  program.destroy();
  await expect.poll(() => proxy.proxy.connections).toBe(0);
  await expect.poll(() => asked[0]?.readableEnded || asked[0]?.destroyed).toBe(true);
});

test("a program that ends only its half gets an answer that comes soon after", async () => {
  const port = await serve((socket) => {
    socket.once("data", () => setTimeout(() => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), 100));
  });
  await using proxy = await startProxy([`${NAME}:${port}`], { names });
  expect(await talk(proxy.port, get(port))).toMatch(/^HTTP\/1\.1 200 .*ok$/s);
});

describe("an origin", () => {
  test.each<[what: string, status: number, take: (socket: Socket) => void]>([
    ["that never answers", 504, () => undefined],
    ["that closes at once", 502, (socket) => socket.end()],
    ["that resets", 502, (socket) => socket.once("data", () => socket.resetAndDestroy())],
    ["that speaks otherwise", 502, (socket) => socket.end("220 ready\r\n")],
    ["that changes the protocol", 502, (s) => s.write("HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")],
    ["whose head has no end", 502, (s) => s.write(`HTTP/1.1 200 OK\r\n${"X: 12345678\r\n".repeat(20_000)}`)],
    [
      "that says its length twice",
      502,
      (s) => s.end("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx"),
    ],
  ])("%s: %i", async (_what, status, take) => {
    const port = await serve(take);
    await using proxy = await startProxy([`${NAME}:${port}`], { names, limits: { response: 300 } });
    expect(statusOf(await talk(proxy.port, get(port), { keepOpen: true }))).toBe(status);
  });

  test("that is not there: 502", async () => {
    const server = createServer();
    const port = await listen(server);
    server.close();
    await once(server, "close");
    await using proxy = await startProxy([`${NAME}:${port}`], { names });
    for (const request of [get(port), `CONNECT ${NAME}:${port} HTTP/1.1\r\n\r\n`]) {
      const answer = await talk(proxy.port, request);
      expect([statusOf(answer), answer]).toEqual([502, expect.stringContaining("ECONNREFUSED")]);
    }
  });

  test("whose name is unknown: 502; whose name is not resolved in time: 504", async () => {
    const slow = { "slow.test": () => new Promise<never>(() => undefined) };
    await using proxy = await startProxy(["unknown.test", "slow.test"], { names: slow, route: { lookupTimeout: 50 } });
    expect(statusOf(await talk(proxy.port, "CONNECT unknown.test:443 HTTP/1.1\r\n\r\n"))).toBe(502);
    expect(statusOf(await talk(proxy.port, "CONNECT slow.test:443 HTTP/1.1\r\n\r\n"))).toBe(504);
  });

  test("with several addresses is reached by the next when the first is dead", async () => {
    const port = await serve((socket) => socket.end("here"));
    const route = { isReachable: (address: string) => address.startsWith("127.") };
    const allow = [`plain://${NAME}:${port}`];
    await using proxy = await startProxy(allow, { names: { [NAME]: ["127.0.0.2", "127.0.0.1"] }, route });
    expect(await talk(proxy.port, `CONNECT ${NAME}:${port} HTTP/1.1\r\n\r\n`)).toMatch(/here$/);
  });

  test("may answer before it has read everything", async () => {
    const server = createHttpServer((_incoming, response) => response.writeHead(413).end("too much"));
    const port = await listen(server);
    await using proxy = await startProxy([`${NAME}:${port}`], { names });
    const head = `POST http://${NAME}:${port}/ HTTP/1.1\r\nHost: ${NAME}:${port}\r\nContent-Length: 50000000\r\n\r\n`;
    const answer = await talk(proxy.port, `${head}${"x".repeat(1000)}`, { keepOpen: true });
    expect(answer).toMatch(/^HTTP\/1\.1 413 .*too much/s);
    server.close();
    server.closeAllConnections();
  });
});

test("connections beyond the limit are turned away until one is over", async () => {
  const port = await serve((socket) => socket.resume());
  await using proxy = await startProxy([`${NAME}:${port}`], { names, limits: { connections: 2, linger: 50 } });
  const [first] = await Promise.all([1, 2].map(() => openTunnel(proxy.port, `${NAME}:${port}`)));
  expect(statusOf(await talk(proxy.port, get(port)))).toBe(503);
  first?.destroy();
  while (proxy.proxy.connections > 1) await new Promise((resolve) => setImmediate(resolve));
  (await openTunnel(proxy.port, `${NAME}:${port}`)).destroy();
});

describe("100 MB through a tunnel", () => {
  const TOTAL = 100 << 20;
  const MB = Buffer.alloc(1 << 20, "x");
  /** The buffers of the sockets on the way are the system's, and grow to many MB. */
  const MOST_UNDER_WAY = 48 << 20;

  /** Sends everything as fast as it is taken. */
  const sendAll = async (socket: Socket): Promise<void> => {
    for (let sent = 0; sent < TOTAL; sent += MB.length) {
      if (!socket.write(MB)) await once(socket, "drain");
    }
    socket.end();
  };
  const flushed = (socket: Socket | undefined): number => (socket ? socket.bytesWritten - socket.writableLength : 0);
  /** Reads everything, far slower than it could be sent, and gives the most that was ever under way. */
  const readSlowly = async (
    socket: Socket,
    sender: () => Socket | undefined,
  ): Promise<{ got: number; most: number }> => {
    let [got, most] = [0, 0];
    for await (const chunk of socket) {
      got += (chunk as Buffer).length;
      most = Math.max(most, flushed(sender()) - got);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    return { got, most };
  };

  test("to a slow program waits for it", async () => {
    let sender: Socket | undefined;
    const port = await serve((socket) => {
      sender = socket;
      sendAll(socket).catch(() => undefined);
    });
    await using proxy = await startProxy([`plain://${NAME}:${port}`], { names });
    const { got, most } = await readSlowly(await openTunnel(proxy.port, `${NAME}:${port}`), () => sender);
    expect(got).toBe(TOTAL);
    expect(most).toBeLessThan(MOST_UNDER_WAY);
  });

  test("to a slow origin waits for it", async () => {
    let tunnel: Socket | undefined;
    let read: Promise<{ got: number; most: number }> | undefined;
    const port = await serve((socket) => {
      read = readSlowly(socket, () => tunnel);
    });
    await using proxy = await startProxy([`plain://${NAME}:${port}`], { names });
    tunnel = await openTunnel(proxy.port, `${NAME}:${port}`);
    await sendAll(tunnel);
    const { got, most } = (await read) ?? {};
    expect(got).toBe(TOTAL);
    expect(most).toBeLessThan(MOST_UNDER_WAY);
  });
});
