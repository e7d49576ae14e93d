import { once } from "node:events";
import { type ClientHttp2Session, type ClientHttp2Stream, constants } from "node:http2";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { NetworkEvent } from "../../../contracts/types.js";
import { parseAllow } from "../../../src/sandbox/egress/policy.js";
import { blockedHost, Refusal } from "../../../src/sandbox/egress/refusal.js";
import { type OpenSecrets, openSecrets } from "../../../src/sandbox/egress/secrets.js";
import { Traffic } from "../../../src/sandbox/egress/traffic/traffic.js";
import { ask, type Http2Origin, startHttp2Origin } from "../../support/egress/http2-origin.js";
import { createScratch, type Scratch } from "../../support/scratch.js";

const NAME = "streams.test";
const VALUE = "the-real-value-0123456789";
const { NGHTTP2_CANCEL } = constants;

let scratch: Scratch;
let secrets: OpenSecrets;
let origin: Http2Origin;
let session: ClientHttp2Session;
const placeholder = (): string => secrets.env["TEST_KEY"] ?? "";
const broker: OpenSecrets["broker"] = {
  hosts: [NAME],
  changesOf: (...args) => secrets.broker.changesOf(...args),
};

beforeAll(async () => {
  scratch = createScratch();
  process.env["TEST_KEY"] = VALUE;
  const from = { env: "TEST_KEY" };
  secrets = await openSecrets(
    { TEST_KEY: { hosts: [NAME], header: "x-api-key" }, TEST_BODY: { hosts: [NAME], in: "body", from } },
    { visible: [], network: () => "none" },
  );
  origin = await startHttp2Origin(scratch.path, NAME, {
    broker,
    check({ method, path }) {
      if (method === "DELETE" || path.startsWith("/private"))
        throw new Refusal(403, "no rule allows that", blockedHost(NAME, origin.port, "request_not_allowed"));
    },
    async answer(stream, { headers }, whole) {
      const key = String(headers["x-api-key"] ?? "none");
      const path = String(headers[":path"]);
      if (path === "/echo") {
        stream.respond({ ":status": 200, "x-key": key });
        stream.on("data", (piece: Buffer) => stream.write(piece));
        stream.once("end", () => stream.end());
        return;
      }
      if (path === "/torn") {
        stream.respond({ ":status": 200 });
        stream.write("half", () => stream.destroy(new Error("broken off")));
        return;
      }
      if (path === "/gone") {
        stream.session?.destroy();
        return;
      }
      if (path === "/never") return;
      if (path === "/early") {
        stream.respond({ ":status": 413 }, { waitForTrailers: true });
        stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": "8" }));
        stream.end("too much");
        return;
      }
      if (path === "/status-only") {
        stream.respond({ ":status": 200, "grpc-status": "5", "grpc-message": key }, { endStream: true });
        return;
      }
      const body = await whole;
      stream.respond({ ":status": 200, "x-reflected": key, "set-cookie": ["a=1", "b=2"] }, { waitForTrailers: true });
      stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0", "x-key": key }));
      for (const byte of `you sent ${key} and ${body}`) stream.write(byte);
      stream.end();
    },
  });
  session = await origin.session();
});

afterAll(async () => {
  session.destroy();
  await origin[Symbol.asyncDispose]();
  secrets.close();
  delete process.env["TEST_KEY"];
  scratch.remove();
});

const key = (): Record<string, string> => ({ "x-api-key": placeholder() });
const post = (path: string, more: Record<string, string> = {}): Record<string, string> => ({
  ...{ ":path": path, ":method": "POST", ...more },
});

describe("a program that speaks nothing but HTTP/2", () => {
  test("has a value put into its headers and body, and taken out of headers, body and trailer of the answer", async () => {
    const body = `{"key":"${secrets.env["TEST_BODY"]}"}`;
    const compressed = { "accept-encoding": "gzip", "grpc-accept-encoding": "gzip" };
    const answer = await ask(session, { ...post("/"), ...key(), ...compressed, te: "trailers" }, body);
    expect(answer).toMatchObject({
      status: 200,
      headers: { "x-reflected": placeholder(), "set-cookie": ["a=1", "b=2"] },
      body: `you sent ${placeholder()} and {"key":"${placeholder()}"}`,
      trailer: { "grpc-status": "0", "x-key": placeholder() },
    });
    expect(answer.broken).toBeUndefined();
    expect(origin.asked.at(-1)).toMatchObject({
      headers: {
        ...{ ":method": "POST", ":path": "/", ":scheme": "https", ":authority": `${NAME}:${origin.port}` },
        ...{ "x-api-key": VALUE, te: "trailers" },
      },
      body: `{"key":"${VALUE}"}`,
    });
    expect(origin.asked.at(-1)?.headers).toMatchObject({ "accept-encoding": "identity" });
    expect(origin.asked.at(-1)?.headers).not.toHaveProperty("grpc-accept-encoding");
  });

  test("gets what comes at once, while it still sends", async () => {
    const stream = session.request({ ...post("/echo"), ...key() });
    const [head] = (await once(stream, "response")) as [Record<string, unknown>];
    expect(head["x-key"]).toBe(placeholder());
    for (const word of ["one", "two"]) {
      stream.write(word);
      expect(String((await once(stream, "data"))[0])).toBe(word);
    }
    stream.end();
    await once(stream.resume(), "close");
    expect(stream.rstCode).toBe(0);
  });

  test("has 100 requests under way at the same time, over one connection to the host", async () => {
    const streams = Array.from({ length: 100 }, () => session.request({ ...post("/echo"), ...key() }));
    await Promise.all(streams.map((stream) => once(stream, "response")));
    expect(origin.sockets.size).toBe(1);
    for (const [at, stream] of streams.entries()) stream.end(`${at}`);
    const bodies = await Promise.all(streams.map((stream) => text(stream)));
    expect(bodies).toEqual(streams.map((_, at) => `${at}`));
  });

  test("sends and gets large bodies whole", async () => {
    const body = Buffer.alloc(2 << 20, "0123456789");
    const answer = await ask(session, { ...post("/echo"), ...key() }, body);
    expect(answer.body === body.toString("latin1")).toBe(true);
  });

  test("gets an answer that is a head alone", async () => {
    const answer = await ask(session, { ...post("/status-only"), ...key() }, "body");
    expect(answer).toMatchObject({ status: 200, headers: { "grpc-status": "5", "grpc-message": placeholder() } });
  });

  test("gets an answer, and its trailer, that comes before its body is sent", async () => {
    const stream = session.request(post("/early"));
    stream.write("the start of a body");
    const trailer = once(stream, "trailers");
    let got = "";
    stream.on("data", (piece: Buffer) => {
      got += piece.toString();
    });
    expect((await trailer)[0]).toMatchObject({ "grpc-status": "8" });
    // It goes on sending, and is not waited for.
    await once(stream, "close");
    expect({ got, code: stream.rstCode }).toEqual({ got: "too much", code: 0 });
  });

  test("is told by a 403 what the rules do not allow, and goes on", async () => {
    const before = origin.asked.length;
    const answer = await ask(session, { ":path": "/", ":method": "DELETE" });
    expect(answer).toMatchObject({ status: 403, body: "glovebox: no rule allows that\n" });
    expect(answer.headers["proxy-status"]).toBe('glovebox; error=http_request_denied; details="request_not_allowed"');
    expect(origin.proxy.blocked).toContainEqual({ host: NAME, port: origin.port, reason: "request_not_allowed" });
    expect(origin.asked.length).toBe(before);
    expect(await ask(session, { ":path": "/" })).toMatchObject({ status: 200 });
  });

  test("is told the same in the words of gRPC", async () => {
    const grpc = { "content-type": "application/grpc+proto" };
    const answer = await ask(session, { ...post("/private.Service/Call"), ...grpc }, "body");
    expect(answer).toMatchObject({
      status: 200,
      headers: { "grpc-status": "7", "grpc-message": encodeURIComponent("glovebox: no rule allows that") },
    });
  });

  test.each(["/torn", "/gone"])("is told that an answer is not whole: %s", async (path) => {
    const own = await origin.session();
    const answer = await ask(own, { ":path": path });
    expect(answer.status === 502 || answer.broken !== undefined).toBe(true);
    expect(answer.status).toBe(path === "/torn" ? 200 : 502);
    // Its connection has another one to the host now.
    expect(await ask(own, { ":path": "/" })).toMatchObject({ status: 200 });
    own.destroy();
  });

  test("that breaks off its body has not sent a whole one", async () => {
    const before = origin.asked.length;
    const stream = session.request(post("/never"));
    stream.on("error", () => undefined);
    stream.write("half of it");
    await expect.poll(() => origin.asked.length).toBe(before + 1);
    stream.destroy(new Error("broken off"));
    await new Promise((resolve) => stream.once("close", resolve));
    await expect.poll(() => ask(session, { ":path": "/" })).toMatchObject({ status: 200 });
    expect(origin.asked[before]).not.toHaveProperty("body");
  });

  test("that takes back a request takes it back from the host", async () => {
    const seen: ClientHttp2Stream[] = [];
    let closed = 0;
    await using own = await startHttp2Origin(scratch.path, NAME, {
      answer: (stream) => {
        stream.once("close", () => {
          closed = stream.rstCode ?? 0;
        });
      },
    });
    const other = await own.session();
    const stream = other.request({ ":path": "/" }).on("error", () => undefined);
    seen.push(stream);
    await expect.poll(() => own.asked.length).toBe(1);
    stream.close(NGHTTP2_CANCEL);
    await expect.poll(() => closed).toBe(NGHTTP2_CANCEL);
    other.destroy();
  });
});

describe("the protocol", () => {
  test("is HTTP/1.1 for a program that speaks both", async () => {
    const tls = await origin.open(["h2", "http/1.1"]);
    expect(tls.alpnProtocol).toBe("http/1.1");
    tls.destroy();
  });

  test("is none for a program that speaks neither, which is reported", async () => {
    await expect(origin.open(["spdy/3"])).rejects.toThrow();
    await expect.poll(() => origin.proxy.blocked).toContainEqual({ host: NAME, port: origin.port, reason: "not_http" });
  });

  test.each([
    ["refuses by TLS", ["http/1.1"]],
    ["agrees on nothing", []],
  ])("is HTTP/2 to the host as well: one that does not speak it, and %s, gets nothing", async (_, protocols) => {
    await using own = await startHttp2Origin(scratch.path, NAME, { broker, otherwise: protocols });
    const other = await own.session();
    const answer = await ask(other, { ":path": "/", ...key() });
    expect(answer).toMatchObject({ status: 502, body: expect.stringContaining("speaks no HTTP/2") });
    expect(own.asked).toEqual([]);
    other.destroy();
  });

  test("tells nothing to a host whose certificate is not valid", async () => {
    await using own = await startHttp2Origin(scratch.path, NAME, { broker, isUnknown: true });
    const other = await own.session();
    const answer = await ask(other, { ":path": "/", ...key() });
    expect(answer).toMatchObject({ status: 502, body: expect.stringContaining("DEPTH_ZERO_SELF_SIGNED_CERT") });
    expect(own.asked).toEqual([]);
    other.destroy();
  });

  test("nor where a variable of this process tells Node to accept every certificate", async () => {
    process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
    try {
      await using own = await startHttp2Origin(scratch.path, NAME, { broker, isUnknown: true });
      const other = await own.session();
      expect(await ask(other, { ":path": "/", ...key() })).toMatchObject({ status: 502 });
      expect(own.asked).toEqual([]);
      other.destroy();
    } finally {
      delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
    }
  });

  test("a program that connects and asks for nothing is reported", async () => {
    await using own = await startHttp2Origin(scratch.path, NAME);
    (await own.open()).destroy();
    await expect.poll(() => own.proxy.blocked).toEqual([{ host: NAME, port: own.port, reason: "no_request" }]);
    expect(own.sockets.size).toBe(0);
  });
});

test("requests are written down with the names of their secrets, before they are sent", async () => {
  const events: NetworkEvent[] = [];
  const write = (event: NetworkEvent): void => void events.push(event);
  const traffic = new Traffic("a-sandbox", { audit: { write, close: () => undefined } });
  await using own = await startHttp2Origin(scratch.path, NAME, { broker, traffic });
  const other = await own.session();
  await ask(other, { ":path": "/?query", ...key() });
  other.destroy();
  await expect.poll(() => events.map(({ event }) => event)).toEqual(["open", "request", "close"]);
  expect(events[1]).toMatchObject({ method: "GET", secrets: ["TEST_BODY", "TEST_KEY"] });
  expect(events[2]?.received).toBeGreaterThan(0);
  expect(JSON.stringify(events)).not.toContain("query");
});

test("a value in a message of gRPC is masked by as many bytes", async () => {
  await using own = await startHttp2Origin(scratch.path, NAME, {
    broker,
    answer: (stream) => {
      stream.respond({ ":status": 200, "content-type": "application/grpc+proto" });
      stream.end(`\0\0\0\0\x19${VALUE}after`);
    },
  });
  const other = await own.session();
  const { body } = await ask(other, { ":path": "/", ...key() });
  expect(body).toBe(`\0\0\0\0\x19${placeholder().slice(0, VALUE.length)}after`);
  other.destroy();
});

test("a host that never answers is given up, and the request is taken back", async () => {
  await using own = await startHttp2Origin(scratch.path, NAME, {
    limits: { response: 100 },
    answer: () => undefined,
  });
  const other = await own.session();
  expect(await ask(other, { ":path": "/" })).toMatchObject({ status: 504 });
  other.destroy();
});

test("a connection is cut when the rules no longer allow its host", async () => {
  await using own = await startHttp2Origin(scratch.path, NAME, { answer: () => undefined });
  const other = await own.session();
  const stream = other.request({ ":path": "/" }).on("error", () => undefined);
  await expect.poll(() => own.asked.length).toBe(1);
  await own.proxy.proxy.narrowTo(parseAllow([]));
  if (!stream.closed) await once(stream, "close");
  expect(own.proxy.proxy.connections).toBe(0);
  await expect.poll(() => own.sockets.size).toBe(0);
});
