import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { parseAllow, type Reach } from "../../../src/sandbox/egress/policy.js";
import { helloFor, inPieces, serverName, withExtensions } from "../../support/egress/client-hello.js";
import { openTunnel, startOrigin } from "../../support/egress/origin.js";
import { listen, startProxy, statusOf, talk } from "../../support/egress/running-proxy.js";

const NAME = "allowed.test";
const names = { [NAME]: "127.0.0.1" };
const ENCRYPTED_HELLO = 0xfe0d;
const GREASE = 0x3a3a;
const ANYWHERE: Reach = { scopes: ["public"], isDenied: () => false };
const NOTHING = Buffer.alloc(0);

interface Server extends AsyncDisposable {
  readonly port: number;
  readonly sockets: Socket[];
  /** All that came, of every connection. */
  got(): Buffer;
}

/** Counts what comes, and says this first. */
async function startServer(greeting?: string): Promise<Server> {
  const sockets: Socket[] = [];
  const got: Buffer[] = [];
  const server = createServer((socket) => {
    sockets.push(socket.on("error", () => undefined).on("data", (chunk) => got.push(chunk)));
    if (greeting !== undefined) socket.write(greeting);
  });
  return {
    port: await listen(server),
    sockets,
    got: () => Buffer.concat(got),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

interface Outcome {
  status: number | undefined;
  got: Buffer;
  reasons: string[];
}

/** Opens a tunnel and sends bytes, all at once or in segments of this size, and gives what the server got of them. */
async function tunnelled(
  bytes: Buffer,
  opts: { plain?: boolean; host?: string; segment?: number } = {},
): Promise<Outcome> {
  const { host = NAME, plain = false } = opts;
  await using server = await startServer();
  const where = `${host}:${server.port}`;
  const isLiteral = host === "127.0.0.1";
  await using proxy = await startProxy(isLiteral ? [] : [plain ? `plain://${where}` : where], {
    names,
    ...(isLiteral && {
      policy: { ...parseAllow([]), isAllowed: () => true, isPlain: () => plain, reachOf: () => ANYWHERE },
    }),
  });
  if (opts.segment === undefined) {
    const answer = await talk(proxy.port, Buffer.concat([Buffer.from(`CONNECT ${where} HTTP/1.1\r\n\r\n`), bytes]));
    return { status: statusOf(answer), got: server.got(), reasons: proxy.blocked.map(({ reason }) => reason) };
  }
  const client = await openTunnel(proxy.port, where);
  client.resume();
  const over = new Promise((resolve) => void client.on("error", () => undefined).once("close", resolve));
  client.setNoDelay(true);
  for (let at = 0; at < bytes.length && client.writable; at += opts.segment) {
    await new Promise((resolve) => client.write(bytes.subarray(at, at + (opts.segment ?? 1)), resolve));
  }
  client.end();
  await over;
  return { status: 200, got: server.got(), reasons: proxy.blocked.map(({ reason }) => reason) };
}

describe("a tunnel that does not open with a TLS name is cut off before a byte gets out", () => {
  const request = (host: string): Buffer => Buffer.from(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);

  test("a plain request with another Host does not reach the origin", async () => {
    const origin = await startOrigin();
    await using proxy = await startProxy([`${NAME}:${origin.port}`], { names });
    const head = Buffer.from(`CONNECT ${NAME}:${origin.port} HTTP/1.1\r\n\r\n`);
    const answer = await talk(proxy.port, Buffer.concat([head, request("evil.test")]), { keepOpen: true });
    expect(answer).toBe("HTTP/1.1 200 Connection established\r\n\r\n");
    expect(origin.requests).toEqual([]);
    expect(proxy.blocked).toEqual([{ host: NAME, port: origin.port, reason: "no_name" }]);
    origin.close();
  });

  test.each([
    ["a plain request with the right Host", request(NAME)],
    ["another protocol", Buffer.from("SSH-2.0-test\r\n")],
    ["an old hello, without records", Buffer.from([0x80, 0x2e, 1, 3, 1, 0, 0x15, 0, 0, 0, 0x10])],
    ["a zero", Buffer.from([0])],
  ])("%s", async (_what, bytes) => {
    expect(await tunnelled(bytes)).toEqual({ status: 200, got: NOTHING, reasons: ["no_name"] });
    expect(await tunnelled(bytes, { plain: true })).toEqual({ status: 200, got: bytes, reasons: [] });
  });

  test("a hello without a name", async () => {
    const hello = await helloFor(undefined);
    expect(await tunnelled(hello)).toEqual({ status: 200, got: NOTHING, reasons: ["no_name"] });
    expect(await tunnelled(hello, { plain: true })).toEqual({ status: 200, got: hello, reasons: [] });
  });

  test("a hello that ends early", async () => {
    const part = (await helloFor(NAME)).subarray(0, -1);
    expect(await tunnelled(part)).toEqual({ status: 200, got: NOTHING, reasons: ["no_name"] });
    expect(await tunnelled(part, { plain: true })).toEqual({ status: 200, got: part, reasons: [] });
  });

  test("a hello whose open name is another, whatever its encrypted part says", async () => {
    const encrypted = [[ENCRYPTED_HELLO, Buffer.alloc(40)]] as const;
    const other = withExtensions(await helloFor("public.test"), encrypted);
    expect(await tunnelled(other)).toEqual({ status: 200, got: NOTHING, reasons: ["name_mismatch"] });
    // Browsers send such a part in every hello.
    const same = withExtensions(await helloFor(NAME), encrypted);
    expect(await tunnelled(same)).toEqual({ status: 200, got: same, reasons: [] });
  });

  test.each([
    ["two lists of names", [serverName(NAME), serverName(NAME)]],
    ["a list of two names", [serverName(NAME, "evil.test")]],
    ["an empty list", [serverName()]],
    ["bytes after its list", [Buffer.concat([serverName(NAME), Buffer.alloc(3)])]],
  ])("a hello with %s", async (_what, lists) => {
    const hello = withExtensions(
      await helloFor(undefined),
      lists.map((list) => [0, list] as const),
    );
    for (const plain of [false, true]) {
      expect(await tunnelled(hello, { plain })).toEqual({ status: 200, got: NOTHING, reasons: ["name_mismatch"] });
    }
  });

  test("another name, also where other protocols may pass", async () => {
    const hello = await helloFor("evil.test");
    expect(await tunnelled(hello, { plain: true })).toEqual({ status: 200, got: NOTHING, reasons: ["name_mismatch"] });
  });
});

describe("a tunnel that opens with its TLS name passes", () => {
  test("with values that no server knows, and with what follows the hello", async () => {
    const hello = withExtensions(await helloFor(NAME), [[GREASE, Buffer.alloc(1)]]);
    const bytes = Buffer.concat([hello, Buffer.from([20, 3, 3, 0, 1, 1])]);
    expect(await tunnelled(bytes)).toEqual({ status: 200, got: bytes, reasons: [] });
  });

  test.each([
    ["one record", 0],
    ["records of one byte", 1],
  ])("a byte at a time, in %s", async (_what, size) => {
    const hello = await helloFor(NAME);
    const bytes = size === 0 ? hello : inPieces(hello, size);
    expect(await tunnelled(bytes, { segment: 1 })).toEqual({ status: 200, got: bytes, reasons: [] });
    const evil = await helloFor("evil.test");
    const refused = await tunnelled(size === 0 ? evil : inPieces(evil, size), { segment: 1 });
    expect(refused).toEqual({ status: 200, got: NOTHING, reasons: ["name_mismatch"] });
  });
});

describe("a tunnel to an address", () => {
  const host = "127.0.0.1";

  test("needs TLS, which has no name for it", async () => {
    const unnamed = await helloFor(undefined);
    expect(await tunnelled(unnamed, { host })).toEqual({ status: 200, got: unnamed, reasons: [] });
    const literal = withExtensions(unnamed, [[0, serverName(host)]]);
    expect(await tunnelled(literal, { host })).toEqual({ status: 200, got: literal, reasons: [] });
    const other = await helloFor(NAME);
    expect(await tunnelled(other, { host })).toEqual({ status: 200, got: NOTHING, reasons: ["name_mismatch"] });
    const request = Buffer.from("GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n");
    expect(await tunnelled(request, { host })).toEqual({ status: 200, got: NOTHING, reasons: ["no_name"] });
    expect(await tunnelled(request, { host, plain: true })).toEqual({ status: 200, got: request, reasons: [] });
  });

  test("of the newer kind is found in the list", async () => {
    await using proxy = await startProxy(["[2606:4700::1111]:853"]);
    const answer = await talk(proxy.port, "CONNECT [2606:4700:0::1111]:853 HTTP/1.1\r\n\r\n");
    expect(statusOf(answer)).toBe(403);
    expect(proxy.blocked).toEqual([{ host: "2606:4700::1111", port: 853, reason: "not_public" }]);
  });
});

describe("a tunnel in which nobody says hello", () => {
  /** The time a program waits to be cut off, and what it got until then. */
  const wait = async (
    port: number,
    where: string,
    say: (socket: Socket) => void,
  ): Promise<{ ms: number; got: string }> => {
    const socket = await openTunnel(port, where);
    const started = performance.now();
    const got: Buffer[] = [];
    socket.on("error", () => undefined).on("data", (chunk: Buffer) => got.push(chunk));
    say(socket);
    await new Promise((resolve) => void socket.once("close", resolve));
    return { ms: performance.now() - started, got: Buffer.concat(got).toString() };
  };

  test("is cut off in time, also while its hello drips", async () => {
    await using server = await startServer();
    const where = `${NAME}:${server.port}`;
    await using proxy = await startProxy([where], { names, limits: { head: 400 } });
    const hello = await helloFor(NAME);
    const drip = (socket: Socket): void => {
      let at = 0;
      const timer = setInterval(() => socket.write(hello.subarray(at, ++at)), 10);
      socket.once("close", () => clearInterval(timer));
    };
    const results = await Promise.all([wait(proxy.port, where, () => undefined), wait(proxy.port, where, drip)]);
    for (const { ms, got } of results) {
      expect(got).toBe("");
      expect(ms).toBeGreaterThan(390);
      expect(ms).toBeLessThan(3_000);
    }
    expect(server.got()).toEqual(NOTHING);
    expect(proxy.blocked).toEqual([{ host: NAME, port: server.port, reason: "no_name" }]);
    expect(proxy.proxy.connections).toBe(0);
  });

  test("is cut off at once when the server speaks first, and passes where the entry says plain", async () => {
    await using server = await startServer("220 ready\r\n");
    const where = `${NAME}:${server.port}`;
    await using strict = await startProxy([where], { names });
    const { got } = await wait(strict.port, where, () => undefined);
    expect(got).toBe("");
    expect(strict.blocked).toEqual([{ host: NAME, port: server.port, reason: "no_name" }]);

    await using plain = await startProxy([`plain://${where}`], { names });
    const socket = await openTunnel(plain.port, where);
    const [greeting] = (await once(socket, "data")) as [Buffer];
    expect(greeting.toString()).toBe("220 ready\r\n");
    socket.destroy();
  });

  test("ends without a word when the program goes away, and so does its connection to the server", async () => {
    await using server = await startServer();
    const where = `${NAME}:${server.port}`;
    await using proxy = await startProxy([where], { names });
    const socket = await openTunnel(proxy.port, where);
    const closed = once(server.sockets[0] as Socket, "close");
    socket.destroy();
    await closed;
    expect(proxy.blocked).toEqual([]);
  });
});
