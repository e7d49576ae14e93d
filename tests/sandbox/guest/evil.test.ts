import { afterEach, describe, expect, test } from "vitest";
import { connectInside, waitForPortInside } from "../../../src/sandbox/guest/connection.js";
import {
  ANSWER,
  BodyWriter,
  DATA_BYTES,
  encodeFrame,
  PROTOCOL_VERSION,
  REQUEST,
} from "../../../src/sandbox/guest/frames.js";
import { GuestFiles } from "../../../src/sandbox/guest/guest-files.js";
import { GuestCall, startCommand } from "../../../src/sandbox/guest/guest-process.js";
import { resolveInside } from "../../../src/sandbox/guest/names.js";
import { type EvilGuest, greeting, startEvilGuest } from "../../support/guest/evil-guest.js";

const WINDOW = 256 << 10;
let guest: EvilGuest;

afterEach(() => guest.close());

/** Two calls under way on one channel: the one that is lied about is number 1. */
async function twoCalls(type: number = REQUEST.start): Promise<[GuestCall, GuestCall]> {
  guest = await startEvilGuest();
  return [new GuestCall(guest.channel, type, []), new GuestCall(guest.channel, REQUEST.start, [])];
}

function leftOut(stdout: bigint, stderr: bigint): Uint8Array {
  const body = Buffer.alloc(16);
  body.writeBigUInt64LE(stdout, 0);
  body.writeBigUInt64LE(stderr, 8);
  return body;
}

/** The channel has ended with `tampered`, and so has everything that waited for it. */
async function expectTampered(...calls: GuestCall[]): Promise<void> {
  expect(await guest.ended).toMatchObject({ code: "tampered" });
  for (const call of calls) {
    await expect(call.wait()).rejects.toMatchObject({ code: "tampered" });
    const drain = async (): Promise<void> => {
      for await (const _ of call.stdout);
    };
    await expect(drain()).rejects.toMatchObject({ code: "tampered" });
  }
  expect(() => new GuestCall(guest.channel, REQUEST.stat, [])).toThrow(expect.objectContaining({ code: "tampered" }));
}

describe("a guest that was taken over", () => {
  test.each([0, PROTOCOL_VERSION + 1, 0xffffffff])("greets with version %i", async (version) => {
    guest = await startEvilGuest({ greets: false });
    guest.say(ANSWER.hello, 0, greeting(version));
    await expect(guest.channel.hello).rejects.toMatchObject({ code: "tampered" });
    await expectTampered();
  });

  test("greets twice, or of a call, or late", async () => {
    guest = await startEvilGuest();
    guest.say(ANSWER.hello, 0, greeting());
    await expectTampered();
    await guest.close();
    guest = await startEvilGuest({ greets: false });
    guest.say(ANSWER.hello, 1, greeting());
    await expect(guest.channel.hello).rejects.toMatchObject({ code: "tampered" });
    await guest.close();
    guest = await startEvilGuest({ greets: false });
    const early = new GuestCall(guest.channel, REQUEST.start, []);
    guest.say(ANSWER.started, 1);
    await expectTampered(early);
  });

  test("of an older version gets no request that it would not know", async () => {
    guest = await startEvilGuest();
    expect((await guest.channel.hello).edition).toBe(1);
    expect(() => guest.channel.assertEdition(2, "rename")).toThrow(expect.objectContaining({ code: "unsupported" }));
    expect(() => guest.channel.assertEdition(1, "read")).not.toThrow();
  });

  test("of an older version starts no command with one pipe for both outputs", async () => {
    guest = await startEvilGuest();
    await guest.channel.hello;
    const spec = { argv: ["true"], cwd: "/", env: {}, stdin: "none", combined: true } as const;
    await expect(startCommand(guest.channel, spec, "")).rejects.toMatchObject({ code: "unsupported" });
    expect(guest.channel.isIdle).toBe(true);
  });

  test("of an older version serves no paths outside its root, and no cwd there", async () => {
    guest = await startEvilGuest({ edition: 2 });
    await guest.channel.hello;
    expect(() => files().anywhere()).toThrow(expect.objectContaining({ code: "unsupported" }));
    const spec = { argv: ["true"], cwd: "/tmp", env: {}, stdin: "none", anywhere: true } as const;
    await expect(startCommand(guest.channel, spec, "/tmp")).rejects.toMatchObject({ code: "unsupported" });
    expect(guest.channel.isIdle).toBe(true);
  });

  test("sends stderr of a command that has one pipe for both outputs", async () => {
    const calls = await twoCalls();
    calls[0].expectNoStderr();
    guest.say(ANSWER.started, 1);
    guest.say(ANSWER.stdout, 1, Buffer.from("x"));
    guest.say(ANSWER.stderr, 1, Buffer.from("x"));
    expect(await guest.ended).toMatchObject({ code: "tampered" });
  });

  const lies: [string, (far: EvilGuest) => void][] = [
    ["garbage", (far) => far.raw(Buffer.alloc(100, 0xa5))],
    ["a frame out of sequence", (far) => far.raw(encodeFrame(9, ANSWER.started, 1, []))],
    ["data of a call that never was", (far) => far.say(ANSWER.stdout, 77, Buffer.from("x"))],
    ["data before the start", (far) => far.say(ANSWER.stdout, 1, Buffer.from("x"))],
    ["an end before the start", (far) => far.say(ANSWER.exit, 1, new Uint8Array(6))],
    ["a result of a command", (far) => far.say(ANSWER.result, 1, new Uint8Array(6))],
    ["a request as an answer", (far) => far.say(REQUEST.start, 1)],
  ];
  test.each(lies)("sends %s", async (_name, lie) => {
    const calls = await twoCalls();
    lie(guest);
    await expectTampered(...calls);
  });

  const laterLies: [string, (far: EvilGuest) => void][] = [
    ["a second start", (far) => far.say(ANSWER.started, 1)],
    ["half an end of a command", (far) => far.say(ANSWER.ended, 1)],
    ["empty output", (far) => far.say(ANSWER.stdout, 1)],
    ["a short end", (far) => far.say(ANSWER.exit, 1, new Uint8Array(5))],
    ["an exit code of 256", (far) => far.say(ANSWER.exit, 1, Buffer.from([0, 0, 1, 0, 0, 0]))],
    ["an end by signal 0", (far) => far.say(ANSWER.exit, 1, Buffer.from([1, 0, 0, 0, 0, 0]))],
    ["a negative exit code", (far) => far.say(ANSWER.exit, 1, Buffer.from([0, 255, 255, 255, 255, 0]))],
    ["less output than was asked for", (far) => far.say(ANSWER.leftOut, 1, Buffer.alloc(16, 1))],
    ["room that nobody used", (far) => far.say(ANSWER.stdinCredit, 1, Buffer.from([1, 0, 0, 0]))],
    ["all the room there is", (far) => far.say(ANSWER.stdinCredit, 1, Buffer.alloc(4, 0xff))],
  ];
  test.each(laterLies)("sends %s after an honest start", async (_name, lie) => {
    const calls = await twoCalls();
    guest.say(ANSWER.started, 1);
    guest.say(ANSWER.started, 2);
    await Promise.all(calls.map((call) => call.started()));
    lie(guest);
    expect(await guest.ended).toMatchObject({ code: "tampered" });
    await expectTampered(...calls);
  });

  test("opens connections that nobody listens for, or more than there can be", async () => {
    const calls = await twoCalls();
    guest.say(ANSWER.accepted, 0x80000000);
    await expectTampered(...calls);
    await guest.close();
    guest = await startEvilGuest();
    const taken: GuestCall[] = [];
    guest.channel.acceptors.set("", (call) => {
      taken.push(new GuestCall(guest.channel, "accepted", call));
      return taken.at(-1) as GuestCall;
    });
    // Each ends before the next one, so there is one at a time.
    for (let call = 0x80000000; call < 0x80000200; call++) {
      guest.say(ANSWER.accepted, call);
      guest.say(ANSWER.exit, call, new Uint8Array(6));
    }
    for (let call = 0x80001000; call <= 0x80001100; call++) guest.say(ANSWER.accepted, call);
    expect(await guest.ended).toMatchObject({ code: "tampered" });
    expect(taken).toHaveLength(512 + 256);
    await expectTampered(...taken.slice(512));
  });

  test("passes on queries that nobody answers, or more than there can be", async () => {
    const query = Buffer.alloc(20);
    const calls = await twoCalls();
    guest.say(ANSWER.query, 0, query);
    await expectTampered(...calls);
    await guest.close();
    guest = await startEvilGuest({ edition: 4 });
    let asked = 0;
    const started = resolveInside(guest.channel, 0x7f000001, () => {
      asked++;
      return new Promise(() => undefined);
    });
    for (let number = 0; number <= 64; number++) guest.say(ANSWER.query, 0, query);
    await expect(started).rejects.toMatchObject({ code: "tampered" });
    expect(asked).toBe(64);
  });

  const connectionLies: [string, (far: EvilGuest) => void][] = [
    ["half an end before it is there", (far) => far.say(ANSWER.ended, 1)],
    ["bytes before it is there", (far) => far.say(ANSWER.stdout, 1, Buffer.from("x"))],
    ["a result", (far) => far.say(ANSWER.result, 1)],
    ["a second output", (far) => [far.say(ANSWER.started, 1), far.say(ANSWER.stderr, 1, Buffer.from("x"))]],
    ["two ends", (far) => [far.say(ANSWER.started, 1), far.say(ANSWER.ended, 1), far.say(ANSWER.ended, 1)]],
    ["bytes after its end", (far) => [far.say(ANSWER.started, 1), far.say(ANSWER.ended, 1)]],
    ["bytes after it is over", (far) => [far.say(ANSWER.started, 1), far.say(ANSWER.exit, 1, new Uint8Array(6))]],
    [
      "more than there is room for",
      (far) => {
        far.say(ANSWER.started, 1);
        for (let sent = 0; sent < WINDOW; sent += DATA_BYTES) far.say(ANSWER.stdout, 1, Buffer.alloc(DATA_BYTES, 1));
      },
    ],
  ];
  test.each(connectionLies)("sends about a connection to a port: %s", async (_name, lie) => {
    const calls = await twoCalls(REQUEST.connect);
    lie(guest);
    guest.say(ANSWER.stdout, 1, Buffer.from("x"));
    expect(await guest.ended).toMatchObject({ code: "tampered" });
    await expect(calls[1].wait()).rejects.toMatchObject({ code: "tampered" });
  });

  test("of an older version is asked for no port", async () => {
    guest = await startEvilGuest();
    await expect(connectInside(guest.channel, 80)).rejects.toMatchObject({ code: "unsupported" });
    await expect(waitForPortInside(guest.channel, 80, 1000)).rejects.toMatchObject({ code: "unsupported" });
  });

  test("goes on with the output of a connection after its end", async () => {
    guest = await startEvilGuest();
    const taken: GuestCall[] = [];
    guest.channel.acceptors.set("", (call) => {
      taken.push(new GuestCall(guest.channel, "accepted", call));
      return taken.at(-1) as GuestCall;
    });
    guest.say(ANSWER.accepted, 0x80000000);
    guest.say(ANSWER.ended, 0x80000000);
    guest.say(ANSWER.stdout, 0x80000000, Buffer.from("more"));
    expect(await guest.ended).toMatchObject({ code: "tampered" });
    await expect(taken[0]?.wait()).rejects.toMatchObject({ code: "tampered" });
  });

  test("goes on about a call that has ended", async () => {
    const [first, second] = await twoCalls();
    guest.say(ANSWER.started, 1);
    guest.say(ANSWER.exit, 1, new Uint8Array(6));
    expect(await first.wait()).toEqual({ exitCode: 0 });
    guest.say(ANSWER.stdout, 1, Buffer.from("late"));
    await expectTampered(second);
  });

  test("sends more than the window of a stream that nobody reads", async () => {
    guest = await startEvilGuest();
    const call = new GuestCall(guest.channel, REQUEST.start, []);
    guest.say(ANSWER.started, 1);
    for (let sent = 0; sent < WINDOW; sent += DATA_BYTES) guest.say(ANSWER.stdout, 1, Buffer.alloc(DATA_BYTES, 1));
    await call.started();
    // All of the window is honest: it can be read, and gives new credit.
    const iterator = call.stdout[Symbol.asyncIterator]();
    let read = 0;
    while (read < WINDOW) read += (await iterator.next()).value?.length ?? Number.NaN;
    expect(read).toBe(WINDOW);
    for (let sent = 0; sent < WINDOW; sent += DATA_BYTES) guest.say(ANSWER.stdout, 1, Buffer.alloc(DATA_BYTES, 2));
    guest.say(ANSWER.stdout, 1, Buffer.of(3));
    expect(await guest.ended).toMatchObject({ code: "tampered" });
    await expect(call.wait()).rejects.toMatchObject({ code: "tampered" });
  });

  test.each<[string, number, Uint8Array[]]>([
    ["of the one output that is followed", 1, [leftOut(0n, 1n)]],
    ["more than can be counted", 1, [leftOut(2n ** 53n, 0n)]],
    ["twice", 1, [leftOut(1n, 0n), leftOut(1n, 0n)]],
    ["of a file that is read", 2, [leftOut(1n, 0n)]],
  ])("says that it has left something out: %s", async (_name, about, lies) => {
    guest = await startEvilGuest();
    const call = new GuestCall(guest.channel, REQUEST.start, []);
    call.kept = { stdout: 10 };
    const other = new GuestCall(guest.channel, REQUEST.read, []);
    guest.say(ANSWER.started, 1);
    guest.say(ANSWER.started, 2);
    for (const lie of lies) guest.say(ANSWER.leftOut, about, lie);
    await expectTampered(call, other);
  });

  test("gives stdin room once it has been used, and not more than that", async () => {
    guest = await startEvilGuest();
    const call = new GuestCall(guest.channel, REQUEST.start, []);
    guest.say(ANSWER.started, 1);
    await call.started();
    // Two writers at once: both have to wait, and one of them twice.
    const writes = Promise.all([call.writeStdin(Buffer.alloc(300 << 10)), call.writeStdin(Buffer.alloc(300 << 10))]);
    for (const used of [WINDOW, 2 * WINDOW]) {
      await guest.heard(used);
      guest.say(ANSWER.stdinCredit, 1, Buffer.concat(new BodyWriter().u32(WINDOW).pieces));
    }
    await writes;
    guest.say(ANSWER.stdinCredit, 1, Buffer.concat(new BodyWriter().u32(WINDOW).pieces));
    await expectTampered(call);
  });

  const files = (): GuestFiles => new GuestFiles(guest.channel, (path) => path);
  const results: [string, number, (work: GuestFiles) => Promise<unknown>, Uint8Array][] = [
    ["a list that is cut off", ANSWER.result, (work) => work.list("x"), Buffer.from([5, 0, 0, 0, 65])],
    ["a list with half a length", ANSWER.result, (work) => work.list("x"), Buffer.from([1, 0])],
    ["a list with an empty name", ANSWER.result, (work) => work.list("x"), Buffer.from([0, 0, 0, 0])],
    ["a list with a path in it", ANSWER.result, (work) => work.list("x"), Buffer.from([3, 0, 0, 0, 46, 46, 47])],
    ["a list with a long name", ANSWER.result, (work) => work.list("x"), Buffer.alloc(400, 1)],
    ["a short description", ANSWER.result, (work) => work.stat("x"), Buffer.alloc(20)],
    ["a description of no kind", ANSWER.result, (work) => work.stat("x"), Buffer.alloc(21, 9)],
    ["an end for a description", ANSWER.exit, (work) => work.stat("x"), Buffer.alloc(6)],
    ["an end for a rename", ANSWER.exit, (work) => work.rename("x", "y"), Buffer.alloc(6)],
  ];
  const DETAILS = Buffer.alloc(19);
  const lists: [string, (work: GuestFiles) => Promise<unknown>, Uint8Array][] = [
    ["an empty name", (work) => work.list("x"), Buffer.from([0])],
    ["a path", (work) => work.list("x"), Buffer.from([2, 46, 47])],
    ["a name that is cut off", (work) => work.list("x"), Buffer.from([2, 46])],
    ["a zero byte", (work) => work.list("x"), Buffer.from([1, 0])],
    ["half a description", (work) => work.listDetails("x"), DETAILS.subarray(1)],
    ["no name", (work) => work.listDetails("x"), Buffer.concat([DETAILS, Buffer.of(0)])],
    ["an entry of no kind", (work) => work.listDetails("x"), Buffer.concat([Buffer.alloc(19, 9), Buffer.of(1, 65)])],
    ["a short target", (work) => work.statTarget("x"), Buffer.alloc(20)],
  ];
  test.each(lists)("lists %s", async (_name, ask, body) => {
    guest = await startEvilGuest({ edition: 2 });
    const asked = ask(files());
    const other = new GuestCall(guest.channel, REQUEST.start, []);
    guest.say(ANSWER.result, 1, body);
    await expect(asked).rejects.toMatchObject({ code: "tampered" });
    await expectTampered(other);
  });

  test("lists names that are cut between frames, and more than can be kept", async () => {
    guest = await startEvilGuest({ edition: 2 });
    const cut = files().list("x");
    guest.say(ANSWER.started, 1);
    for (const part of [[3, 65], [66], [67, 1], [68]]) guest.say(ANSWER.stdout, 1, Buffer.from(part));
    guest.say(ANSWER.exit, 1, new Uint8Array(6));
    expect(await cut).toEqual(["ABC", "D"]);
    const entry = Buffer.alloc(256, 65);
    entry[0] = 255;
    const part = Buffer.concat(Array.from({ length: 256 }, () => entry));
    const endless = files().list("x");
    const refused = expect(endless).rejects.toMatchObject({ code: "limit_exceeded" });
    guest.say(ANSWER.started, 2);
    let heard = 0;
    // Each credit of the host lets it send as much again.
    for (let sent = 0; sent <= 64 << 20; sent += part.length) {
      guest.say(ANSWER.stdout, 2, part);
      if ((sent / part.length) % 4 !== 3) continue;
      heard += 13;
      await guest.heard(heard);
    }
    await refused;
    guest.say(ANSWER.exit, 2, Buffer.from([1, 9, 0, 0, 0, 0]));
  });

  test.each<[string, (work: GuestFiles) => Promise<unknown>]>([
    ["copy", (work) => work.copy("x", "y", false)],
    ["append", (work) => work.append("x", Buffer.of(1), 0o644)],
    ["readStream", (work) => work.readStream("x", { start: 0 })],
    ["statTarget", (work) => work.statTarget("x")],
    ["listDetails", (work) => work.listDetails("x")],
    ["removeDirectory", (work) => work.removeDirectory("x")],
  ])("of an older version is not asked for %s", async (_name, ask) => {
    guest = await startEvilGuest();
    await expect(ask(files())).rejects.toMatchObject({ code: "unsupported", hint: expect.any(String) });
  });

  test.each(results)("answers file work with %s", async (_name, type, ask, body) => {
    guest = await startEvilGuest();
    const asked = ask(files());
    const other = new GuestCall(guest.channel, REQUEST.start, []);
    guest.say(type, 1, body);
    await expect(asked).rejects.toMatchObject({ code: "tampered" });
    await expectTampered(other);
  });
});

test("a request that is too large is refused, and the sandbox goes on", async () => {
  guest = await startEvilGuest();
  expect(() => new GuestCall(guest.channel, REQUEST.start, [Buffer.alloc((4 << 20) + 1)])).toThrow(
    expect.objectContaining({ code: "limit_exceeded" }),
  );
  const call = new GuestCall(guest.channel, REQUEST.stat, []);
  guest.say(ANSWER.result, 2, Buffer.of(1));
  await call.wait();
  expect(call.result).toEqual(Buffer.of(1));
});
