import { setTimeout as delay } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { answerTo, readQuery } from "../../../src/sandbox/egress/direct/dns-message.js";
import { type Listening, NameListeners, type NamePlace } from "../../../src/sandbox/egress/direct/name-listeners.js";
import { createNames } from "../../../src/sandbox/egress/direct/open-names.js";
import { createPace } from "../../../src/sandbox/egress/direct/pace.js";
import { resolveName } from "../../../src/sandbox/egress/direct/resolver.js";
import { parseAllow } from "../../../src/sandbox/egress/policy.js";
import { EgressProxy } from "../../../src/sandbox/egress/proxy.js";
import { startEvilGuest } from "../../support/guest/evil-guest.js";

const SHARED = 0x7f4d0001;
/** What a tunnel sends in a name, in the longest labels. */
const LONG = ["a", "b", "c"].map((letter) => letter.repeat(63)).join(".");

function queryFor(name: string, opts: { type?: number; class?: number; flags?: number } = {}): Buffer {
  const header = Buffer.from([0xab, 0xcd, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
  header.writeUInt16BE(opts.flags ?? 0x0100, 2);
  const labels = name.split(".").map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]));
  const end = Buffer.from([0, 0, opts.type ?? 1, 0, opts.class ?? 1]);
  return Buffer.concat([header, ...labels, end]);
}

/** What a resolver says: the code, and the address if there is one. */
async function ask(query: Buffer, allow: readonly string[] = ["allowed.test", "*.below.test"]): Promise<unknown> {
  const policy = parseAllow(allow);
  const unknown: string[] = [];
  const reply = await resolveName(query, {
    isKnown: (host) => policy.portsOf(host).length > 0,
    addressOf: async () => SHARED,
    onUnknown: (host) => unknown.push(host),
  });
  if (reply === undefined) return undefined;
  expect(reply.subarray(0, 2)).toEqual(query.subarray(0, 2));
  expect(reply.readUInt16BE(2) & 0x8000).toBe(0x8000);
  const code = reply.readUInt16BE(2) & 15;
  return reply.readUInt16BE(6) === 1 ? { code, address: reply.readUInt32BE(reply.length - 4) } : { code, unknown };
}

describe("the resolver of a sandbox", () => {
  test.each([
    ["an allowed name", queryFor("allowed.test"), { code: 0, address: SHARED }],
    ["one in other letters", queryFor("AlLoWeD.TeSt"), { code: 0, address: SHARED }],
    ["one below a wildcard", queryFor("a.b.below.test"), { code: 0, address: SHARED }],
    ["any record of it", queryFor("allowed.test", { type: 255 }), { code: 0, address: SHARED }],
    ["its IPv6 address", queryFor("allowed.test", { type: 28 }), { code: 0, unknown: [] }],
    ["its mail servers", queryFor("allowed.test", { type: 15 }), { code: 0, unknown: [] }],
    ["the name above a wildcard", queryFor("below.test"), { code: 3, unknown: ["below.test"] }],
    ["another name", queryFor("evil.test"), { code: 3, unknown: ["evil.test"] }],
    ["the text of another name", queryFor("evil.test", { type: 16 }), { code: 3, unknown: [] }],
    ["the text of an allowed name", queryFor("allowed.test", { type: 16 }), { code: 0, unknown: [] }],
    ["the data of a name below a wildcard", queryFor(`${LONG}.below.test`, { type: 10 }), { code: 0, unknown: [] }],
    ["a long name below a wildcard", queryFor(`${LONG}.below.test`), { code: 0, address: SHARED }],
    ["the data of another name", queryFor(`${LONG}.evil.test`, { type: 10 }), { code: 3, unknown: [] }],
    ["another name, with much in it", queryFor(`${LONG}.evil.test`), { code: 3, unknown: [`${LONG}.evil.test`] }],
    ["a name of the local network", queryFor("printer"), { code: 3, unknown: [] }],
    [
      "a name with a dot in a label",
      Buffer.concat([queryFor("x").subarray(0, 12), Buffer.from("\x0callowed.test\0\0\x01\0\x01", "latin1")]),
      { code: 3, unknown: [] },
    ],
    ["an address", queryFor("1.2.3.4"), { code: 3, unknown: [] }],
    ["another class", queryFor("allowed.test", { class: 3 }), { code: 5, unknown: [] }],
    ["another operation", queryFor("allowed.test", { flags: 0x2800 }), { code: 4, unknown: [] }],
    ["an answer", queryFor("allowed.test", { flags: 0x8000 }), undefined],
    ["half a header", queryFor("allowed.test").subarray(0, 7), undefined],
    ["half a name", queryFor("allowed.test").subarray(0, 20), { code: 1, unknown: [] }],
    [
      "a name that refers to itself",
      Buffer.concat([queryFor("x").subarray(0, 12), Buffer.from([0xc0, 12, 0, 1, 0, 1])]),
      { code: 1, unknown: [] },
    ],
    [
      "a label that is too long",
      Buffer.concat([
        queryFor("x").subarray(0, 12),
        Buffer.from([64]),
        Buffer.alloc(64, 97),
        Buffer.from([0, 0, 1, 0, 1]),
      ]),
      { code: 1, unknown: [] },
    ],
    [
      "a name without an end",
      Buffer.concat([queryFor("x").subarray(0, 12), Buffer.alloc(500, 1)]),
      { code: 1, unknown: [] },
    ],
  ])("is asked for %s", async (_what, query, said) => {
    expect(await ask(query)).toEqual(said);
  });

  test("gets no address when nothing can listen", async () => {
    const reply = await resolveName(queryFor("allowed.test"), {
      isKnown: () => true,
      addressOf: async () => undefined,
      onUnknown: () => undefined,
    });
    expect(reply?.readUInt16BE(2)).toBe(0x8182);
  });

  test("reads anything at all without a failure, and answers in less than a datagram", async () => {
    const heads = fc.constantFrom(queryFor("allowed.test"), queryFor("x").subarray(0, 12), Buffer.alloc(0));
    const bytes = fc.tuple(heads, fc.uint8Array({ maxLength: 500 })).map((pieces) => Buffer.concat(pieces));
    await fc.assert(
      fc.asyncProperty(bytes, async (query) => {
        const read = readQuery(query);
        if (read === undefined) return;
        expect(answerTo(query, 0, { value: SHARED, ttl: 1 }).length).toBeLessThanOrEqual(512);
        await ask(query);
      }),
      { numRuns: 3000 },
    );
  });

  test("is not there if the guest is too old, which is said", async () => {
    const guest = await startEvilGuest({ edition: 3 });
    const failures: string[] = [];
    const proxy = new EgressProxy({ policy: parseAllow([]), onBlocked: () => undefined });
    const onFailure = (message: string): void => void failures.push(message);
    await createNames({ channel: guest.channel, proxy, onFailure }).open();
    expect(failures).toEqual([
      expect.stringMatching(/resolve no names in this sandbox: its guest is of an older version/),
    ]);
    await guest.close();
  });
});

describe("the listeners of names", () => {
  const watch = (lease: number, isTaken: (place: NamePlace) => boolean = () => false) => {
    const seen = { open: [] as string[], stopped: [] as string[], uses: [] as (() => void)[] };
    const text = ({ address, port, host }: NamePlace): string => `${address - SHARED}:${port} ${host ?? "any"}`;
    const listening: Listening = {
      lease,
      listen: async (place, onUse) => {
        if (isTaken(place)) throw new Error("taken");
        seen.open.push(text(place));
        seen.uses.push(onUse);
      },
      stop: async (place) => void seen.stopped.push(text(place)),
    };
    return { ...seen, listeners: new NameListeners(listening) };
  };

  test("are shared, except by names whose hosts need not speak TLS", async () => {
    const { listeners, open } = watch(60_000);
    expect(await listeners.addressOf("one.test", [80, 443], false)).toBe(SHARED);
    expect(await listeners.addressOf("two.test", [443, 8443], false)).toBe(SHARED);
    expect(await listeners.addressOf("plain.test", [22], true)).toBe(SHARED + 256);
    expect(await listeners.addressOf("other.test", [22], true)).toBe(SHARED + 257);
    expect(await listeners.addressOf("plain.test", [22], true)).toBe(SHARED + 256);
    expect(open).toEqual(["0:80 any", "0:443 any", "0:8443 any", "256:22 plain.test", "257:22 other.test"]);
    listeners.close();
  });

  test("are closed when they are not used, and opened again", async () => {
    const { listeners, open, stopped } = watch(20);
    await listeners.addressOf("one.test", [443], false);
    await expect.poll(() => stopped).toEqual(["0:443 any"]);
    await listeners.addressOf("one.test", [443], false);
    expect(open).toEqual(["0:443 any", "0:443 any"]);
    listeners.close();
  });

  test.concurrent.each(["looked up", "used"])("stay open while they are %s", async (how) => {
    const { listeners, open, stopped, uses } = watch(2_000);
    const until = performance.now() + 5_000;
    await listeners.addressOf("one.test", [443], false);
    while (performance.now() < until) {
      if (how === "looked up") await listeners.addressOf("one.test", [443], false);
      else for (const use of uses) use();
      await delay(50);
    }
    expect([open, stopped]).toEqual([["0:443 any"], []]);
    listeners.close();
  });

  test("give an address if one port is free, and none otherwise; what was taken is tried again", async () => {
    const taken = new Set([80]);
    const { listeners, open } = watch(60_000, ({ port }) => taken.has(port));
    expect(await listeners.addressOf("one.test", [80, 443], false)).toBe(SHARED);
    expect(await listeners.addressOf("one.test", [80], false)).toBe(undefined);
    taken.clear();
    expect(await listeners.addressOf("one.test", [80], false)).toBe(SHARED);
    expect(open).toEqual(["0:443 any", "0:80 any"]);
    listeners.close();
  });
});

test("a pace lets some through at once and the rest at its rate", async () => {
  const pace = createPace(1000, 50);
  const started = performance.now();
  for (let count = 0; count < 40; count++) await pace();
  const all = Array.from({ length: 310 }, () => pace());
  await Promise.all(all);
  // 350 less the burst, at a thousandth of a second each
  expect(performance.now() - started).toBeGreaterThan(290);
});
