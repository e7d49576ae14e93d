import { once } from "node:events";
import { createServer } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { NetworkRules } from "../../../contracts/types.js";
import { parseAllow, parseRules } from "../../../src/sandbox/egress/policy.js";
import { ask, startHttp2Origin } from "../../support/egress/http2-origin.js";
import { type InspectedOrigin, startInspectedOrigin } from "../../support/egress/inspected-origin.js";
import { openTunnel } from "../../support/egress/origin.js";
import { closed, listen, startProxy } from "../../support/egress/running-proxy.js";
import { createScratch, type Scratch } from "../../support/scratch.js";

const NAME = "narrow.test";
const UNCHANGED = { changesOf: () => undefined };

let scratch: Scratch;
let origin: InspectedOrigin;
let asked = 0;

beforeAll(async () => {
  scratch = createScratch();
  origin = await startInspectedOrigin(scratch.path, [NAME], UNCHANGED, ({ url }, response) => {
    asked++;
    if (url === "/ended") response.end("ok");
    else if (url === "/socket")
      response.socket?.write("HTTP/1.1 101 Ok\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
  });
});

afterAll(async () => {
  await origin[Symbol.asyncDispose]();
  scratch.remove();
});

/** Opens a connection, sends a request, and gives it once the origin has it. */
async function send(path: string, more = ""): ReturnType<InspectedOrigin["open"]> {
  const tls = await origin.open(NAME);
  const before = asked;
  tls.write(`GET ${path} HTTP/1.1\r\nHost: ${NAME}:${origin.port}\r\n${more}\r\n`);
  await expect.poll(() => asked).toBe(before + 1);
  return tls;
}

const UPGRADE =
  "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x3JJHMbDL1EzLkh9GBhXDw==\r\nSec-WebSocket-Version: 13\r\n";
const only = (rule: Omit<NetworkRules["allow"][number] & object, "host">): ReturnType<typeof parseRules> =>
  parseRules({ allow: [{ host: NAME, port: origin.port, ...rule }] });

describe("rules that come while a request is under way", () => {
  test("cut it where they don't allow it", async () => {
    const tls = await send("/open");
    await origin.proxy.narrowTo(only({ methods: ["POST"] }));
    await closed(tls);
    expect(origin.proxy.connections).toBe(0);
  });

  test("cut a WebSocket that began with it", async () => {
    const tls = await send("/socket", UPGRADE);
    await once(tls, "data");
    await origin.proxy.narrowTo(only({ paths: ["/other"] }));
    await closed(tls);
    expect(origin.proxy.connections).toBe(0);
  });

  test("leave what they allow, and a connection whose request is over", async () => {
    const tls = await send("/open");
    const over = await send("/ended");
    await once(over, "data");
    await origin.proxy.narrowTo(only({ paths: ["/open", "/later"] }));
    expect(origin.proxy.connections).toBe(2);
    await origin.proxy.narrowTo(parseAllow([]));
    await Promise.all([closed(tls), closed(over)]);
  });

  test("cut a stream of HTTP/2, with its connection", async () => {
    await using own = await startHttp2Origin(scratch.path, NAME, {
      answer: (stream, { headers }) => {
        if (headers[":path"] === "/open") return;
        stream.respond({ ":status": 200 });
        stream.end("ok");
      },
    });
    const session = await own.session();
    const stream = session.request({ ":path": "/open" }).on("error", () => undefined);
    await expect.poll(() => own.asked.length).toBe(1);
    expect(await ask(session, { ":path": "/ended" })).toMatchObject({ status: 200 });
    const rules = (path: string): ReturnType<typeof parseRules> =>
      parseRules({ allow: [{ host: NAME, port: own.port, paths: [path] }] });
    await own.proxy.proxy.narrowTo(rules("/open"));
    expect(own.proxy.proxy.connections).toBe(1);
    await own.proxy.proxy.narrowTo(rules("/ended"));
    if (!stream.closed) await once(stream, "close");
    expect(own.proxy.proxy.connections).toBe(0);
  });
});

describe("rules that come while a tunnel is open", () => {
  const silent = createServer((socket) => socket.on("error", () => undefined));
  let port = 0;

  beforeAll(async () => {
    port = await listen(silent);
  });
  afterAll(() => void silent.close());

  test.each<[what: string, before: () => NetworkRules, after: () => NetworkRules, left: number]>([
    [
      "deny the address that it leads to",
      () => ({ allow: [`plain://${NAME}:${port}`] }),
      () => ({ allow: [`plain://${NAME}:${port}`], deny: ["127.0.0.1"] }),
      0,
    ],
    [
      "no longer say that it may lead to a private address",
      () => ({ allow: [{ host: NAME, port, plain: true, private: true }] }),
      () => ({ allow: [{ host: NAME, port, plain: true }] }),
      0,
    ],
    [
      "deny another address",
      () => ({ allow: [`plain://${NAME}:${port}`] }),
      () => ({ allow: [`plain://${NAME}:${port}`], deny: ["127.0.0.2"] }),
      1,
    ],
  ])("and %s", async (_, before, after, left) => {
    await using running = await startProxy([], { policy: parseRules(before()), names: { [NAME]: "127.0.0.1" } });
    const socket = await openTunnel(running.port, `${NAME}:${port}`);
    await running.proxy.narrowTo(parseRules(after()));
    expect(running.proxy.connections).toBe(left);
    socket.destroy();
  });

  test("and come between the decision and its effect", async () => {
    const policy = parseAllow([`plain://${NAME}:${port}`]);
    await using running = await startProxy([], {
      names: { [NAME]: "127.0.0.1" },
      policy: {
        ...policy,
        ruleFor() {
          void running.proxy.narrowTo(parseAllow([]));
          return NAME;
        },
      },
    });
    await expect(openTunnel(running.port, `${NAME}:${port}`)).rejects.toThrow();
    expect(running.lookups).toEqual([]);
  });
});
