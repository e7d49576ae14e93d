import { constants } from "node:http2";
import type { TLSSocket } from "node:tls";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  block,
  CONTINUATION,
  DATA,
  END_HEADERS,
  END_STREAM,
  frame,
  GOAWAY,
  HEADERS,
  PING,
  PREFACE,
  RST_STREAM,
  readFrames,
  SETTINGS,
} from "../../../support/egress/http2-frames.js";
import { type Answered, ask, type Http2Origin, startHttp2Origin } from "../../../support/egress/http2-origin.js";
import { createScratch, type Scratch } from "../../../support/scratch.js";

const NAME = "hostile.test";
const { NGHTTP2_CANCEL } = constants;
const SETTINGS_ACK = 1;
const PUSH_PROMISE = 5;
const CANCEL = Buffer.from([0, 0, 0, 8]);

type Header = readonly [name: string, value: string];

let scratch: Scratch;
/** What nobody in this process has handled. */
const failures: unknown[] = [];
const fail = (error: unknown): void => void failures.push(error);

beforeAll(() => {
  scratch = createScratch();
});

afterAll(() => scratch.remove());

beforeEach(() => {
  failures.length = 0;
  process.on("uncaughtExceptionMonitor", fail).on("unhandledRejection", fail);
});

afterEach(() => {
  process.off("uncaughtExceptionMonitor", fail).off("unhandledRejection", fail);
});

const head = (headers: readonly Header[], flags = 0): Buffer => frame(HEADERS, END_HEADERS | flags, 1, block(headers));
const OK = head([[":status", "200"]]);
const body = frame(DATA, 0, 1, Buffer.from("body"));
const trailer = (headers: readonly Header[]): Buffer => head(headers, END_STREAM);

/** An origin that says these to its first request, byte for byte. */
async function saying(...frames: Buffer[]): Promise<Http2Origin> {
  return await startHttp2Origin(scratch.path, NAME, {
    // After some of these nothing is read any more, which Node does not tell.
    limits: { response: 1_000, idle: 1_000, linger: 100 },
    speak(socket: TLSSocket) {
      socket.write(Buffer.concat([frame(SETTINGS, 0, 0), frame(SETTINGS, SETTINGS_ACK, 0)]));
      socket.once("readable", () => {
        socket.read(PREFACE.length); // it is no frame
        void readFrames(socket, ({ type }) => type === HEADERS).then(() => socket.write(Buffer.concat(frames)));
      });
    },
  });
}

/** What a program gets from it. */
async function got(...frames: Buffer[]): Promise<Answered> {
  await using own = await saying(...frames);
  const session = await own.session();
  const answer = await ask(session, { ":path": "/" });
  session.destroy();
  await expect.poll(() => own.proxy.proxy.connections).toBe(0);
  return answer;
}

/** Whether a program could take it for a whole answer of the host. */
const isWhole = ({ status, broken }: Answered): boolean => broken === undefined && status !== 502 && status !== 504;

test("an answer in plain frames is what it seems to be", async () => {
  const answer = await got(OK, body, trailer([["x-trailer", "1"]]));
  expect(answer).toMatchObject({ status: 200, body: "body", trailer: { "x-trailer": "1" } });
  expect(isWhole(answer)).toBe(true);
});

const single: Header[] = [
  ["content-type", "a/b"],
  ["content-type", "c/d"],
];
const many = Array.from({ length: 500 }, (_, at): Header => [`x-${at}`, "1"]);

describe("a host that breaks HTTP/2 fails its own request and nothing else", () => {
  test.each<[what: string, frames: Buffer[]]>([
    ["no status", [head([["x-a", "1"]]), body, trailer([])]],
    ["a status that is no number", [head([[":status", "abc"]], END_STREAM)]],
    ["a status that is too low", [head([[":status", "99"]], END_STREAM)]],
    ["a status that is too high", [head([[":status", "1000"]], END_STREAM)]],
    ["the status of another protocol", [head([[":status", "101"]]), body]],
    ["an answer before its end is an interim one", [head([[":status", "103"]], END_STREAM)]],
    ["a header twice that may come once", [head([[":status", "200"], ...single], END_STREAM)]],
    [
      "a head larger than is taken",
      [head([[":status", "200"], ...many, ...many, ["x-a", "b".repeat(9_000)]], END_STREAM)],
    ],
    ["a trailer whose header may come once", [OK, body, trailer(single)]],
    ["a trailer with a status", [OK, body, trailer([[":status", "200"]])]],
    ["a trailer that does not end the stream", [OK, body, head([["x-a", "1"]]), body]],
    ["its body before its head", [body, OK]],
    ["a reset before its head", [frame(RST_STREAM, 0, 1, CANCEL), OK]],
    ["a reset before its trailer", [OK, body, frame(RST_STREAM, 0, 1, CANCEL), trailer([["x-a", "1"]])]],
    ["a request of its own", [frame(PUSH_PROMISE, END_HEADERS, 1, Buffer.from([0, 0, 0, 2])), OK]],
    ["frames of a stream that there is not", [frame(HEADERS, END_HEADERS, 7, block([[":status", "200"]])), OK]],
    ["a headless continuation", [OK, frame(CONTINUATION, END_HEADERS, 1, block([["x-a", "1"]]))]],
    ["a ping that is too short", [OK, body, frame(PING, 0, 0, Buffer.alloc(3))]],
    [
      "the end of the connection",
      [OK, body, frame(GOAWAY, 0, 0, Buffer.alloc(8)), frame(SETTINGS, SETTINGS_ACK, 0, body)],
    ],
    ["what is no HTTP/2", [Buffer.from("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")]],
  ])("%s", async (_, frames) => {
    expect(isWhole(await got(...frames))).toBe(false);
    expect(failures).toEqual([]);
  });

  test.each<[what: string, frames: Buffer[]]>([
    ["a trailer with a name that is none", [OK, body, trailer([["x y", "1"]])]],
    ["a trailer about the connection", [OK, body, trailer([["connection", "close"]])]],
    ["a trailer with a line end", [OK, body, trailer([["x-a", "1\r\nx-b: 2"]])]],
    ["a second trailer", [OK, body, trailer([["x-a", "1"]]), trailer([["x-b", "2"]])]],
    ["a reset after its end", [OK, body, trailer([["x-a", "1"]]), frame(RST_STREAM, 0, 1, CANCEL)]],
  ])("or nothing at all: %s", async (_, frames) => {
    const answer = await got(...frames);
    if (isWhole(answer)) expect(answer).toMatchObject({ status: 200, body: "body" });
    expect(Object.keys(answer.trailer).filter((name) => name !== "x-a")).toEqual([]);
    expect(failures).toEqual([]);
  });
});

test("a host that says again and again that a body may come is passed on once", async () => {
  await using own = await saying(...Array.from({ length: 100 }, () => head([[":status", "100"]])), OK, trailer([]));
  const session = await own.session();
  const stream = session.request({ ":path": "/" });
  let said = 0;
  stream.on("continue", () => said++);
  await new Promise((resolve) => stream.resume().once("close", resolve));
  expect({ said, code: stream.rstCode }).toEqual({ said: 1, code: 0 });
  session.destroy();
});

test.each(["response", "data", "trailers", "end"])(
  "a program that takes its request back at the %s of the answer fails nothing else",
  async (moment) => {
    await using own = await startHttp2Origin(scratch.path, NAME, {
      answer(stream) {
        stream.respond({ ":status": 200 }, { waitForTrailers: true });
        stream.once("wantTrailers", () => stream.sendTrailers({ "x-a": "1" }));
        stream.write("body");
        setImmediate(() => stream.end());
      },
    });
    const session = await own.session();
    const taken = Array.from({ length: 50 }, async () => {
      const stream = session.request({ ":path": "/" }).on("error", () => undefined);
      stream.once(moment, () => stream.close(NGHTTP2_CANCEL));
      await new Promise((resolve) => stream.resume().once("close", resolve));
    });
    await Promise.all(taken);
    expect(await ask(session, { ":path": "/" })).toMatchObject({ status: 200, body: "body", trailer: { "x-a": "1" } });
    session.destroy();
    expect(failures).toEqual([]);
  },
);
