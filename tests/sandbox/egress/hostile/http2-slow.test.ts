import type { TLSSocket } from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  block,
  CONTINUATION,
  END_HEADERS,
  END_STREAM,
  frame,
  GOAWAY,
  HEADERS,
  PING,
  PREFACE,
  readFrames,
  SETTINGS,
} from "../../../support/egress/http2-frames.js";
import { type Http2Origin, startHttp2Origin } from "../../../support/egress/http2-origin.js";
import { createScratch, type Scratch } from "../../../support/scratch.js";

const NAME = "slow.test";

let scratch: Scratch;

beforeAll(() => {
  scratch = createScratch();
});

afterAll(() => scratch.remove());

const headers = (own: Http2Origin): Buffer =>
  block([
    [":method", "GET"],
    [":scheme", "https"],
    [":authority", `${NAME}:${own.port}`],
    [":path", "/"],
  ]);

/** Sends these at first, and then a little every few milliseconds until the connection is over. Gives whether that was announced. */
async function drip(own: Http2Origin, tls: TLSSocket, first: Buffer[], piece: Buffer): Promise<boolean> {
  const frames = readFrames(tls, () => false);
  tls.write(Buffer.concat([PREFACE, frame(SETTINGS, 0, 0), ...first]));
  const dripping = setInterval(() => tls.write(piece), 10);
  try {
    await expect.poll(() => own.proxy.proxy.connections).toBe(0);
  } finally {
    clearInterval(dripping);
    tls.destroy();
  }
  return (await frames).some(({ type }) => type === GOAWAY);
}

const ping = frame(PING, 0, 0, Buffer.alloc(8));

describe("a program that speaks HTTP/2 and takes its time", () => {
  test.each<[what: string, first: (own: Http2Origin) => Buffer[], piece: Buffer]>([
    ["with pings before its first request", () => [], ping],
    [
      "over the head of its first request",
      (own) => [frame(HEADERS, 0, 1, headers(own)), frame(CONTINUATION, 0, 1, Buffer.alloc(16_000)).subarray(0, 9)],
      block([["a", "b"]]),
    ],
  ])("%s is given up", async (_, first, piece) => {
    await using own = await startHttp2Origin(scratch.path, NAME, { limits: { head: 300, linger: 100 } });
    expect(await drip(own, await own.open(), first(own), piece)).toBe(true);
    expect(own.asked).toEqual([]);
    // It is no program that distrusts the certificate.
    expect(own.proxy.blocked).toEqual([]);
  });

  test("with pings after its last request is given up", async () => {
    await using own = await startHttp2Origin(scratch.path, NAME, { limits: { idle: 300, linger: 100 } });
    const request = frame(HEADERS, END_HEADERS | END_STREAM, 1, headers(own));
    expect(await drip(own, await own.open(), [request], ping)).toBe(true);
    expect(own.asked.length).toBe(1);
  });

  test("is not given up while a request is under way", async () => {
    let end = (): void => undefined;
    const limits = { idle: 2_000, linger: 100 };
    await using own = await startHttp2Origin(scratch.path, NAME, {
      limits,
      answer: (stream) => {
        stream.respond({ ":status": 200 });
        const more = setInterval(() => stream.write("."), 10);
        stream.once("close", () => clearInterval(more));
        end = () => stream.end("the end");
      },
    });
    const session = await own.session();
    const stream = session.request({ ":path": "/" });
    let got = "";
    const startedAt = performance.now();
    for await (const piece of stream) {
      got += String(piece);
      if (performance.now() - startedAt > limits.idle * 1.5) end();
    }
    expect({ end: got.slice(-7), code: stream.rstCode }).toEqual({ end: "the end", code: 0 });
    session.destroy();
  });
});
