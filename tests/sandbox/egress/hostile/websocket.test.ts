import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type OpenSecrets, openSecrets } from "../../../../src/sandbox/egress/secrets.js";
import { type InspectedOrigin, startInspectedOrigin } from "../../../support/egress/inspected-origin.js";
import { createScratch, type Scratch } from "../../../support/scratch.js";

const NAME = "socket.test";
const VALUE = "the-real-value-0123456789";
const UPGRADED = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";

let scratch: Scratch;
let secrets: OpenSecrets;
let origin: InspectedOrigin;
let server: Socket | null | undefined;

beforeAll(async () => {
  scratch = createScratch();
  process.env["TEST_KEY"] = VALUE;
  secrets = await openSecrets({ TEST_KEY: { hosts: [NAME] } }, { visible: [], network: () => "none" });
  const { broker } = secrets;
  const changesOf: typeof broker.changesOf = (host, _port, method) => broker.changesOf(host, 443, method);
  origin = await startInspectedOrigin(scratch.path, [NAME], { changesOf }, (_received, response) => {
    server = response.socket;
    server?.write(UPGRADED);
  });
});

afterAll(async () => {
  await origin[Symbol.asyncDispose]();
  secrets.close();
  delete process.env["TEST_KEY"];
  scratch.remove();
});

/** A frame as a server sends it. */
function frame(payload: string): Buffer {
  const body = Buffer.from(payload, "latin1");
  const head = Buffer.alloc(body.length < 126 ? 2 : body.length < 65_536 ? 4 : 10);
  head[0] = 0x81;
  if (head.length === 2) head[1] = body.length;
  else if (head.length === 4) head.writeUInt16BE(body.length, 2);
  else head.writeBigUInt64BE(BigInt(body.length), 2);
  if (head.length > 2) head[1] = head.length === 4 ? 126 : 127;
  return Buffer.concat([head, body]);
}

/** A WebSocket through the proxy, whose request had the value, and what comes back by it. */
async function open(): Promise<{ tls: TLSSocket; got: () => Buffer }> {
  const tls = await origin.open(NAME);
  let bytes = Buffer.alloc(0);
  tls.on("data", (piece: Buffer) => {
    bytes = Buffer.concat([bytes, piece]);
  });
  const lines = [`GET / HTTP/1.1`, `Host: ${NAME}:${origin.port}`, `X-Api-Key: ${secrets.env["TEST_KEY"]}`];
  tls.write(`${[...lines, "Connection: Upgrade", "Upgrade: websocket"].join("\r\n")}\r\n\r\n`);
  await expect.poll(() => bytes.includes("\r\n\r\n")).toBe(true);
  expect(origin.bytes()).toContain(`X-Api-Key: ${VALUE}\r\n`);
  return { tls, got: () => bytes.subarray(bytes.indexOf("\r\n\r\n") + 4) };
}

/** The placeholder, as often as it fits. */
const masked = (): string => Buffer.alloc(VALUE.length, secrets.env["TEST_KEY"]).toString();

test.each([0, 200, 70_000])("a server that repeats the value in a frame after %i bytes has it masked", async (more) => {
  const { tls, got } = await open();
  const around = "x".repeat(more);
  const bytes = frame(`${around}{"key":"${VALUE}"}`);
  // One byte at a time where it matters.
  for (const byte of bytes.subarray(0, 12)) server?.write(Buffer.from([byte]));
  server?.write(bytes.subarray(12, -20));
  for (const byte of bytes.subarray(-20)) server?.write(Buffer.from([byte]));
  const expected = frame(`${around}{"key":"${masked()}"}`);
  await expect.poll(() => got().length).toBe(expected.length);
  expect(got().equals(expected)).toBe(true);
  tls.destroy();
});

test("the end of a frame comes at once, also if it could be the start of the value", async () => {
  const { tls, got } = await open();
  const first = frame("the-real");
  server?.write(first);
  await expect.poll(() => got().length).toBe(first.length);
  const all = Buffer.concat([first, frame(""), frame(`-${VALUE}`)]);
  server?.write(all.subarray(first.length));
  await expect.poll(() => got().length).toBe(all.length);
  expect(got().equals(Buffer.concat([first, frame(""), frame(`-${masked()}`)]))).toBe(true);
  tls.destroy();
});

test("what a program sends passes as it is", async () => {
  const { tls } = await open();
  const before = origin.bytes().length;
  const sent = `${secrets.env["TEST_KEY"]} and ${VALUE.slice(0, 8)}`;
  tls.write(sent);
  await expect.poll(() => origin.bytes().slice(before)).toBe(sent);
  tls.destroy();
});

test("what is no frame passes, up to the end of the connection", async () => {
  const { tls, got } = await open();
  server?.end("\x81\x7f\0", "latin1");
  await expect.poll(() => got().toString("latin1")).toBe("\x81\x7f\0");
  tls.destroy();
});
