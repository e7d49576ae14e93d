import { connect as connectHttp2 } from "node:http2";
import type { TLSSocket } from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseRules } from "../../../../src/sandbox/egress/policy.js";
import { type OpenSecrets, openSecrets } from "../../../../src/sandbox/egress/secrets.js";
import {
  block,
  CONTINUATION,
  DATA,
  END_HEADERS,
  END_STREAM,
  type Frame,
  frame,
  GOAWAY,
  HEADERS,
  PING,
  PREFACE,
  pour,
  RST_STREAM,
  readFrames,
  SETTINGS,
} from "../../../support/egress/http2-frames.js";
import { ask, type Http2Origin, startHttp2Origin } from "../../../support/egress/http2-origin.js";
import { createScratch, type Scratch } from "../../../support/scratch.js";

const NAME = "streams.test";
const VALUE = "the-real-value-0123456789";
const RULES = parseRules({
  allow: [{ host: NAME, methods: ["GET", "POST"], paths: ["/open/**"] }],
  deny: [{ host: NAME, paths: ["/open/admin/**"] }],
});

let scratch: Scratch;
let secrets: OpenSecrets;
let origin: Http2Origin;

beforeAll(async () => {
  scratch = createScratch();
  process.env["TEST_KEY"] = VALUE;
  secrets = await openSecrets(
    { TEST_KEY: { hosts: [NAME], header: "x-api-key" } },
    { visible: [], network: () => "none" },
  );
  origin = await startHttp2Origin(scratch.path, NAME, {
    broker: secrets.broker,
    check: (request) => RULES.checkRequest(NAME, 443, request),
    limits: { linger: 100 },
  });
});

afterAll(async () => {
  await origin[Symbol.asyncDispose]();
  secrets.close();
  delete process.env["TEST_KEY"];
  scratch.remove();
});

type Header = readonly [name: string, value: string];

const authority = (): string => `${NAME}:${origin.port}`;

/** The headers of a request that is allowed, and has the secret's placeholder. */
const allowed = (changed: Record<string, string | undefined> = {}): Header[] =>
  Object.entries({
    ...{ ":method": "POST", ":scheme": "https", ":authority": authority(), ":path": "/open/a" },
    "x-api-key": secrets.env["TEST_KEY"] ?? "",
    ...changed,
  }).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]));

const isAnswer = ({ type, stream }: Frame): boolean =>
  type === GOAWAY || (stream === 1 && (type === HEADERS || type === RST_STREAM));

/** Sends frames of a client in this order, and gives the first thing that is said to its first stream. */
async function say(...frames: Buffer[]): Promise<{ said: Frame | undefined; tls: TLSSocket }> {
  const tls = await origin.open();
  const reading = readFrames(tls, isAnswer);
  tls.write(Buffer.concat([PREFACE, frame(SETTINGS, 0, 0), ...frames]));
  return { said: (await reading).find(isAnswer), tls };
}

const only = (headers: readonly Header[], flags = END_HEADERS | END_STREAM): Buffer =>
  frame(HEADERS, flags, 1, block(headers));

/** The origin's own requests during some work. */
async function askedBy(work: () => Promise<unknown>): Promise<unknown[]> {
  const before = origin.asked.length;
  await work();
  return origin.asked.slice(before);
}

/** A later request is answered, so an earlier one would have come by now. */
async function settle(): Promise<void> {
  const session = await origin.session();
  expect(await ask(session, { ":path": "/open/later" })).toMatchObject({ status: 200 });
  session.destroy();
  origin.asked.pop();
}

describe("a request that names something else than its TLS is never sent", () => {
  test.each<[what: string, headers: () => Record<string, string>]>([
    ["another :authority", () => ({ ":authority": "evil.test" })],
    ["the :authority at another port", () => ({ ":authority": `${NAME}:1` })],
    ["an :authority with a user", () => ({ ":authority": `evil.test@${authority()}` })],
    ["an :authority that only starts with the name", () => ({ ":authority": `${NAME}.evil.test` })],
    ["two names in the :authority", () => ({ ":authority": `${authority()},evil.test` })],
    ["an :authority with a path", () => ({ ":authority": `${NAME}/x@evil.test` })],
    ["another Host beside the :authority", () => ({ host: "evil.test" })],
    ["a path that is a whole address", () => ({ ":path": "https://evil.test/open/a" })],
    ["a path that could be a host", () => ({ ":path": "//evil.test/open/a" })],
    ["a path that leads back", () => ({ ":path": "/open/../private" })],
    ["a path with an encoded slash", () => ({ ":path": "/open/..%2fprivate" })],
    ["a path that is denied, in other letters", () => ({ ":path": "/open/ADMIN/a" })],
    ["a path that no rule has", () => ({ ":path": "/private" })],
    ["a path with a fragment", () => ({ ":path": "/open/a#/../../private" })],
    ["no rooted path", () => ({ ":path": "open/a" })],
    ["a star for a path", () => ({ ":path": "*" })],
    ["a method that no rule has", () => ({ ":method": "DELETE" })],
    ["another method by a header", () => ({ "x-http-method-override": "DELETE" })],
    ["another method by a parameter", () => ({ ":path": "/open/a?_method=DELETE" })],
  ])("%s", async (_, headers) => {
    const asked = await askedBy(async () => {
      const session = await origin.session();
      const answer = await ask(session, Object.fromEntries(allowed(headers()))).catch(() => undefined);
      session.destroy();
      if (answer?.broken === undefined) expect([400, 403]).toContain(answer?.status);
      await settle();
    });
    expect(asked).toEqual([]);
  });

  test("plain http in the :scheme", async () => {
    const asked = await askedBy(async () => {
      await say(only(allowed({ ":scheme": "http" })));
      await settle();
    });
    expect(asked).toEqual([]);
  });

  test("CONNECT, to a host and to a WebSocket", async () => {
    const asked = await askedBy(async () => {
      const tunnel: Header[] = [
        [":method", "CONNECT"],
        [":authority", "evil.test:22"],
      ];
      for (const headers of [tunnel, allowed({ ":method": "CONNECT", ":protocol": "websocket" })]) {
        const { said, tls } = await say(only(headers, END_HEADERS));
        expect(said).toBeDefined();
        tls.destroy();
      }
      await settle();
    });
    expect(asked).toEqual([]);
  });
});

describe("what HTTP/2 does not allow, and a server of HTTP/1.1 behind it would take for something else, is never sent", () => {
  const hidden = `\r\n\r\nGET /private HTTP/1.1\r\nHost: ${NAME}\r\n\r\n`;

  test.each<[what: string, changed: Record<string, string | undefined>]>([
    ["a coding of the transfer", { "transfer-encoding": "chunked" }],
    ["a header about the connection", { connection: "x-api-key" }],
    ["a change of protocol", { upgrade: "websocket" }],
    ["a name in upper case", { "X-Other": "1" }],
    ["a line end in the path", { ":path": `/open/a HTTP/1.1${hidden}` }],
    ["a space in the path", { ":path": "/open/a /private" }],
    ["a line end in the method", { ":method": `GET /private HTTP/1.1${hidden}` }],
    ["a line end in the :authority", { ":authority": `${NAME}\r\nX: 1` }],
    ["a length that is none", { "content-length": "1, 2" }],
    ["a length with a sign", { "content-length": "+0" }],
    ["a pseudo-header that is not known", { ":other": "1" }],
    ["the status of an answer", { ":status": "200" }],
    ["no path", { ":path": undefined }],
    ["an empty path", { ":path": "" }],
    ["no method", { ":method": undefined }],
    ["no scheme", { ":scheme": undefined }],
    ["no authority and no Host", { ":authority": undefined }],
  ])("%s", async (_, changed) => {
    const asked = await askedBy(async () => {
      const { said, tls } = await say(only(allowed(changed)));
      expect(said).toBeDefined();
      tls.destroy();
      await settle();
    });
    expect(asked).toEqual([]);
  });

  test.each<[what: string, changed: Record<string, string>]>([
    ["a name with a colon", { "x-other: 1\r\nhost": "1" }],
    ["a name with a space", { "x other": "1" }],
    ["an empty name", { "": "1" }],
    ["a line end in a value", { "x-other": `1${hidden}` }],
    ["a NUL in a value", { "x-other": "1\0" }],
  ])("a header is left out that has %s", async (_, changed) => {
    const before = origin.asked.length;
    const { said, tls } = await say(only(allowed(changed)));
    expect(said?.type).toBe(HEADERS);
    tls.destroy();
    const sent = origin.asked.slice(before).map(({ headers }) => Object.keys(headers).sort());
    expect(sent).toEqual([[":authority", ":method", ":path", ":scheme", "accept-encoding", "x-api-key"]]);
  });

  test.each<[what: string, headers: () => Header[]]>([
    ["two paths", () => [...allowed(), [":path", "/private"]]],
    ["two authorities", () => [[":authority", "evil.test"], ...allowed()]],
    ["a pseudo-header behind the others", () => [...allowed({ ":path": undefined }), [":path", "/open/a"]]],
    ["two lengths", () => [...allowed({ "content-length": "1" }), ["content-length", "2"]]],
    [
      "two keys, of which a server takes the last",
      () => [...allowed(), ["authorization", "a"], ["authorization", "b"]],
    ],
  ])("%s", async (_, headers) => {
    const asked = await askedBy(async () => {
      const { said, tls } = await say(only(headers()));
      expect(said).toBeDefined();
      tls.destroy();
      await settle();
    });
    expect(asked).toEqual([]);
  });

  test.each<[what: string, length: string, body: string]>([
    ["more of a body than its length says", "2", `hi${hidden}`],
    ["less of a body than its length says", "200", "hi"],
  ])("%s is no whole request", async (_, length, body) => {
    const before = origin.asked.length;
    const { tls } = await say(
      only(allowed({ "content-length": length }), END_HEADERS),
      frame(DATA, END_STREAM, 1, Buffer.from(body)),
    );
    tls.destroy();
    await settle();
    for (const request of origin.asked.slice(before)) expect(request).not.toHaveProperty("body");
  });

  test("a trailer is left out, and no value is put into it", async () => {
    const before = origin.asked.length;
    const { said, tls } = await say(
      only(allowed(), END_HEADERS),
      frame(DATA, 0, 1, Buffer.from("body")),
      frame(HEADERS, END_HEADERS | END_STREAM, 1, block([["x-api-key", secrets.env["TEST_KEY"] ?? ""]])),
    );
    expect(said?.type).toBe(HEADERS);
    tls.destroy();
    const [request] = origin.asked.slice(before);
    expect(request).toMatchObject({ body: "body", headers: { "x-api-key": VALUE } });
  });

  test("a header with the name of JavaScript's prototype is a header", async () => {
    const before = origin.asked.length;
    const { said, tls } = await say(only(allowed({ ["__proto__x"]: "1" })));
    expect(said?.type).toBe(HEADERS);
    tls.destroy();
    expect(origin.asked[before]?.headers).toMatchObject({ __proto__x: "1", ":path": "/open/a" });
  });
});

describe("a flood ends the work of its own connection, and of no other", () => {
  const pieces = function* (count: number, piece: (at: number) => Buffer): Generator<Buffer> {
    for (let at = 0; at < count; at++) yield piece(at);
  };
  const request = (id: number): Buffer => frame(HEADERS, END_HEADERS | END_STREAM, id, block(allowed()));

  test.each<[what: string, count: number, piece: (at: number) => Buffer]>([
    [
      "requests that are taken back at once",
      20_000,
      (at) => Buffer.concat([request(at * 2 + 1), frame(RST_STREAM, 0, at * 2 + 1, Buffer.from([0, 0, 0, 8]))]),
    ],
    ["settings", 200_000, () => frame(SETTINGS, 0, 0)],
    [
      "headers that never end",
      20_000,
      (at) =>
        at === 0 ? frame(HEADERS, 0, 1, block(allowed())) : frame(CONTINUATION, 0, 1, block([["a", "b".repeat(1000)]])),
    ],
    [
      "empty headers that never end",
      200_000,
      (at) => (at === 0 ? frame(HEADERS, 0, 1, block(allowed())) : frame(CONTINUATION, 0, 1)),
    ],
  ])("%s", async (_, count, piece) => {
    const session = await origin.session();
    const tls = await origin.open();
    tls.on("error", () => undefined);
    const before = { memory: process.memoryUsage.rss(), asked: origin.asked.length };
    tls.write(Buffer.concat([PREFACE, frame(SETTINGS, 0, 0)]));
    const said = readFrames(tls, ({ type }) => type === GOAWAY);
    await pour(tls, pieces(count, piece));
    expect((await said).at(-1)?.type).toBe(GOAWAY);
    tls.destroy();
    expect(process.memoryUsage.rss() - before.memory).toBeLessThan(256 << 20);
    expect(origin.asked.length - before.asked).toBeLessThan(5_000);
    expect(await ask(session, { ":path": "/open/a" })).toMatchObject({ status: 200 });
    session.destroy();
  });

  test("pings whose answers nobody reads wait, and take no memory", async () => {
    const tls = await origin.open();
    tls.on("error", () => undefined).pause();
    const before = process.memoryUsage.rss();
    tls.write(Buffer.concat([PREFACE, frame(SETTINGS, 0, 0)]));
    const poured = pour(
      tls,
      pieces(4_000_000, () => frame(PING, 0, 0, Buffer.alloc(8))),
    );
    // What is on its way fills up, and then nothing moves.
    const written: number[] = [];
    await expect
      .poll(() => written.push(tls.bytesWritten) > 1 && written.at(-1) === written.at(-2), { interval: 500 })
      .toBe(true);
    expect(process.memoryUsage.rss() - before).toBeLessThan(64 << 20);
    // Of 68 MB; how much is on its way depends on the buffers of the kernel.
    expect(tls.bytesWritten).toBeLessThan(60_000_000);
    tls.destroy();
    await poured;
  });

  test("more requests at once than are taken are refused, and the rest goes on", async () => {
    await using own = await startHttp2Origin(scratch.path, NAME, { answer: () => undefined });
    const tls = await own.open();
    const headers = block(allowed({ ":authority": `${NAME}:${own.port}` }));
    const refused = readFrames(tls, ({ type }) => type === RST_STREAM);
    const frames = [...pieces(101, (at) => frame(HEADERS, END_HEADERS | END_STREAM, at * 2 + 1, headers))];
    tls.write(Buffer.concat([PREFACE, frame(SETTINGS, 0, 0), ...frames]));
    expect((await refused).at(-1)?.stream).toBe(201);
    await expect.poll(() => own.asked.length).toBe(100);
    tls.destroy();
  });

  test("a large list of headers is refused", async () => {
    const asked = await askedBy(async () => {
      const many = Array.from({ length: 200 }, (_, at): Header => [`x-${at}`, "1"]);
      const { said, tls } = await say(only([...allowed(), ...many]));
      expect(said?.type).not.toBe(HEADERS);
      tls.destroy();
      await settle();
    });
    expect(asked).toEqual([]);
  });
});

describe("HTTP/2 that TLS did not agree on", () => {
  test.each<[what: string, protocols: string[] | undefined]>([
    ["where both speak HTTP/1.1", ["h2", "http/1.1"]],
    ["where nothing was offered", undefined],
  ])("reaches nobody: %s", async (_, protocols) => {
    const asked = await askedBy(async () => {
      const tls = await origin.open(protocols ?? []);
      expect(tls.alpnProtocol).not.toBe("h2");
      const session = connectHttp2(`https://${NAME}`, { createConnection: () => tls });
      const over = new Promise((resolve) => session.once("close", resolve));
      session.on("error", () => undefined);
      session
        .request({ ":path": "/open/a" })
        .on("error", () => undefined)
        .end();
      await over;
      await settle();
    });
    expect(asked).toEqual([]);
  });
});
