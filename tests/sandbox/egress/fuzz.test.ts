import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readHello } from "../../../src/sandbox/egress/client-hello.js";
import type { EgressConnection } from "../../../src/sandbox/egress/connection.js";
import { parseAllow } from "../../../src/sandbox/egress/policy.js";
import { EgressProxy } from "../../../src/sandbox/egress/proxy.js";
import { Refusal } from "../../../src/sandbox/egress/refusal.js";
import { parseHead } from "../../../src/sandbox/egress/request-head.js";
import { targetOf } from "../../../src/sandbox/egress/request-target.js";

const NAME = "allowed.test";
const words = [
  ...[
    "GET",
    "POST",
    "CONNECT",
    "get",
    " ",
    "  ",
    "\t",
    "\r\n",
    "\n",
    "\r",
    "\r\n\r\n",
    "\0",
    ":",
    "/",
    "//",
    "?",
    "#",
    "@",
  ],
  ...[
    "http://",
    "HTTP://",
    "https://",
    "HTTP/1.1",
    "HTTP/1.0",
    "HTTP/2.0",
    "Host",
    "Host: ",
    "content-length: ",
    "5",
    "-1",
  ],
  ...[
    "Transfer-Encoding: chunked",
    "chunked",
    "0\r\n\r\n",
    "Connection: close",
    "X: y",
    "\x16\x03\x01",
    "\xff",
    "\x80",
  ],
  ...[
    NAME,
    `${NAME}:443`,
    `${NAME}:80`,
    `${NAME}.`,
    "evil.test",
    "evil.test:443",
    "127.0.0.1",
    "[::1]:80",
    "localhost:80",
    "0:80",
  ],
];
const soup = fc.array(fc.oneof(fc.constantFrom(...words), fc.string({ unit: "binary", maxLength: 4 })), {
  maxLength: 24,
});
const shaped = fc
  .tuple(
    fc.constantFrom("GET", "POST", "CONNECT", "PRI"),
    fc.oneof(
      fc.array(fc.constantFrom(...words), { maxLength: 4 }),
      fc.constantFrom([`${NAME}:443`], [`http://${NAME}/`], ["evil.test:443"], ["http://evil.test/"]),
    ),
    fc.array(fc.array(fc.constantFrom(...words), { maxLength: 3 }), { maxLength: 3 }),
  )
  .map(([method, target, lines]) => [
    `${method} ${target.join("")} HTTP/1.${lines.length % 2}\r\n`,
    ...lines.map((line) => `${line.join("")}\r\n`),
    "\r\n",
  ]);
const message = fc.oneof(soup, shaped).map((pieces) => Buffer.from(pieces.join(""), "latin1"));

/** A connection that sends these bytes in pieces and remembers what it was answered. */
function createConnection(bytes: Buffer, size: number): { connection: EgressConnection; answer: Promise<string> } {
  const received: Uint8Array[] = [];
  let close: (answer: string) => void = () => undefined;
  const answer = new Promise<string>((resolve) => {
    close = resolve;
  });
  async function* input(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
  }
  const connection: EgressConnection = {
    input: input(),
    write: async (chunk) => {
      received.push(chunk);
    },
    end: async () => undefined,
    destroy: () => close(Buffer.concat(received).toString("latin1")),
  };
  return { connection, answer };
}

test("whatever a program says, it gets an answer of the proxy and no name but an allowed one is resolved", async () => {
  const lookups: string[] = [];
  const dialled: string[] = [];
  const lookup = async (host: string): Promise<string[]> => {
    lookups.push(host);
    return ["192.0.2.7"];
  };
  const isReachable = (address: string): boolean => {
    dialled.push(address);
    return false;
  };
  const proxy = new EgressProxy(
    { policy: parseAllow([NAME]), onBlocked: () => undefined },
    { route: { lookup, isReachable } },
  );
  await fc.assert(
    fc.asyncProperty(message, fc.integer({ min: 1, max: 40 }), async (bytes, size) => {
      const { connection, answer } = createConnection(bytes, size);
      proxy.accept(connection);
      const got = await answer;
      if (bytes.length === 0) expect(got).toBe("");
      else
        expect(got).toMatch(
          /^HTTP\/1\.1 (?:400|403|431) [^\r\n]+\r\n(?:Proxy-Status: glovebox; [^\r\n]+\r\n)?Content-Type: text\/plain/,
        );
    }),
    { numRuns: 3000 },
  );
  await proxy.close();
  expect(lookups.filter((host) => host !== NAME)).toEqual([]);
  expect(dialled.filter((address) => address !== "192.0.2.7")).toEqual([]);
  // Otherwise none of the messages was one that gets anywhere, and the test says nothing.
  expect(lookups.length).toBeGreaterThan(10);
});

test("whatever a program says that believes to be at its server, no name but an allowed one is resolved", async () => {
  const lookups: string[] = [];
  const lookup = async (host: string): Promise<string[]> => {
    lookups.push(host);
    return ["192.0.2.7"];
  };
  const policy = parseAllow([NAME]);
  const proxy = new EgressProxy(
    { policy, onBlocked: () => undefined },
    { route: { lookup, isReachable: () => false } },
  );
  const hellos = fc.constantFrom(NAME, "evil.test", "", "127.0.0.1").map((name) => helloFor(name));
  const heads = fc.tuple(
    fc.constantFrom("/", "*", `http://${NAME}/`, "//evil.test/"),
    fc.constantFrom(NAME, `${NAME}:80`, "evil.test"),
  );
  const requests = heads.map(([path, host]) => Buffer.from(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`));
  const bytes = fc.tuple(fc.oneof(message, hellos, requests), message).map((pieces) => Buffer.concat(pieces));
  await fc.assert(
    fc.asyncProperty(bytes, fc.integer({ min: 1, max: 40 }), async (sent, size) => {
      const { connection, answer } = createConnection(sent, size);
      proxy.accept(connection, { port: sent[0] === 22 ? 443 : 80 });
      // It is answered in its own protocol, or not at all.
      const got = await answer;
      const isAlert = got.length === 7 && got.startsWith("\u0015\u0003\u0003\u0000\u0002\u0002");
      const isRefused = /^HTTP\/1\.1 (?:400|403|431) /.test(got);
      expect(got === "" || (sent[0] === 22 ? isAlert : isRefused)).toBe(true);
    }),
    { numRuns: 2000 },
  );
  await proxy.close();
  expect(lookups.filter((host) => host !== NAME)).toEqual([]);
  expect(lookups.length).toBeGreaterThan(10);
});

test("a head is read as one thing or refused", () => {
  fc.assert(
    fc.property(message, (bytes) => {
      const text = bytes.toString("latin1");
      try {
        const head = parseHead(text);
        const again = [
          `${head.method} ${head.target} HTTP/${head.version}`,
          ...head.headers.map(([n, v]) => `${n}: ${v}`),
        ];
        expect(parseHead(again.join("\r\n"))).toEqual(head);
        expect(again.join("")).not.toMatch(/[\0\r\n]/);
        const { host, port } = targetOf(head);
        expect(host).toMatch(/^[a-z0-9._:-]+$/);
        expect(port >= 1 && port <= 65_535).toBe(true);
      } catch (error) {
        expect(error).toBeInstanceOf(Refusal);
      }
    }),
    { numRuns: 3000 },
  );
});

describe("a TLS hello", () => {
  test("that is anything at all is read without a failure", () => {
    const records = fc
      .uint8Array({ maxLength: 60 })
      .map((bytes) => Buffer.concat([Buffer.from([22, 3, 1, 0, bytes.length]), bytes]));
    fc.assert(
      fc.property(fc.array(fc.oneof(records, fc.uint8Array({ maxLength: 20 })), { maxLength: 5 }), (pieces) => {
        expect(["more", "other", "unnamed", "named", "malformed"]).toContain(readHello(Buffer.concat(pieces)).kind);
      }),
      { numRuns: 2000 },
    );
  });

  test("says its name whole or in part: what is known at the end is never taken back", () => {
    fc.assert(
      fc.property(fc.domain(), fc.integer({ min: 1, max: 30 }), (name, size) => {
        const hello = inRecords(helloFor(name), size);
        expect(readHello(hello)).toEqual({ kind: "named", name });
        for (let length = 0; length < hello.length; length++) {
          const part = readHello(hello.subarray(0, length));
          expect(part).toEqual({ kind: "more", atLeast: expect.toSatisfy((n) => n > length && n <= hello.length) });
        }
      }),
      { numRuns: 50 },
    );
  });
});

function vector(width: number, ...pieces: Buffer[]): Buffer {
  const body = Buffer.concat(pieces);
  const length = Buffer.alloc(width);
  length.writeUIntBE(body.length, 0, width);
  return Buffer.concat([length, body]);
}

/** The least that is a hello with a server name. */
function helloFor(name: string): Buffer {
  const names = vector(2, Buffer.from([0]), vector(2, Buffer.from(name)));
  const extensions = vector(2, Buffer.from([0, 0]), vector(2, names));
  const suites = vector(2, Buffer.from([0x13, 0x01]));
  const body = [Buffer.alloc(34, 3), vector(1, Buffer.alloc(32)), suites, vector(1, Buffer.from([0])), extensions];
  return Buffer.concat([Buffer.from([1]), vector(3, ...body)]);
}

function inRecords(bytes: Buffer, size: number): Buffer {
  const records: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) {
    records.push(Buffer.from([22, 3, 1]), vector(2, bytes.subarray(at, at + size)));
  }
  return Buffer.concat(records);
}
