import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { helloFor, inPieces } from "../../support/egress/client-hello.js";
import { type Origin, startOrigin } from "../../support/egress/origin.js";
import { type RunningProxy, startProxy, statusOf, talk } from "../../support/egress/running-proxy.js";

const NAME = "allowed.test";
let origin: Origin;
let proxy: RunningProxy;

beforeAll(async () => {
  origin = await startOrigin();
  const names = { [NAME]: "127.0.0.1", "gone.test": "127.0.0.1" };
  proxy = await startProxy([`${NAME}:${origin.port}`, "gone.test"], { names, direct: { port: origin.port } });
});
afterAll(async () => {
  await proxy[Symbol.asyncDispose]();
  origin.close();
});

const ask = (...lines: string[]): Promise<string> =>
  talk(proxy.port, [...lines, "", ""].join("\r\n"), { keepOpen: true });

test("a request goes to the host that it names", async () => {
  expect(await ask("GET / HTTP/1.1", `Host: ${NAME}:${origin.port}`)).toMatch(/\r\n\r\nhello GET {4}$/);
  expect(await ask(`GET http://${NAME}:${origin.port}/ HTTP/1.1`, `Host: ${NAME}:${origin.port}`)).toMatch(/hello GET/);
  expect(await ask("GET / HTTP/1.0", `Host: ${NAME}:${origin.port}`)).toMatch(/hello GET/);
  expect(origin.requests.at(-1)?.headers.host).toBe(`${NAME}:${origin.port}`);
});

test.each([
  ["no Host", 400, ["GET / HTTP/1.0"]],
  ["two Hosts", 400, ["GET / HTTP/1.1", "Host: HERE", "Host: evil.test"]],
  ["the same Host twice", 400, ["GET / HTTP/1.1", "Host: HERE", "Host: HERE"]],
  ["a Host that is none", 400, ["GET / HTTP/1.1", "Host: a b"]],
  ["a Host with a user", 400, ["GET / HTTP/1.1", "Host: user@HERE"]],
  ["a Host with another port", 400, ["GET / HTTP/1.1", `Host: ${NAME}:81`]],
  ["a Host without the port", 400, ["GET / HTTP/1.1", `Host: ${NAME}`]],
  ["another address in the request", 400, ["GET http://evil.test/ HTTP/1.1", "Host: HERE"]],
  ["the same name with another port in the request", 400, [`GET http://${NAME}/ HTTP/1.1`, `Host: ${NAME}`]],
  ["CONNECT", 400, ["CONNECT HERE HTTP/1.1", "Host: HERE"]],
  ["no path", 400, ["GET HERE HTTP/1.1", "Host: HERE"]],
  ["another host", 403, ["GET / HTTP/1.1", "Host: evil.test:PORT"]],
  ["the listener itself", 403, ["GET / HTTP/1.1", "Host: 127.77.0.1:PORT"]],
])("a request with %s is answered with %i and goes nowhere", async (_what, status, lines) => {
  const before = [origin.requests.length, proxy.lookups.length];
  const sent = lines.map((line) => line.replace("HERE", `${NAME}:${origin.port}`).replace("PORT", `${origin.port}`));
  expect(statusOf(await ask(...sent))).toBe(status);
  expect([origin.requests.length, proxy.lookups.length]).toEqual(before);
});

const ACCESS_DENIED = "\u0015\u0003\u0003\u0000\u0002\u0002\u0031";
const INTERNAL_ERROR = "\u0015\u0003\u0003\u0000\u0002\u0002\u0050";
const UNRECOGNIZED_NAME = "\u0015\u0003\u0003\u0000\u0002\u0002\u0070";

test("a TLS hello that names another host, or none, gets an alert", async () => {
  const before = proxy.lookups.length;
  const evil = await helloFor("evil.test");
  expect(await talk(proxy.port, evil, { keepOpen: true })).toBe(ACCESS_DENIED);
  expect(await talk(proxy.port, inPieces(evil, 7), { keepOpen: true })).toBe(ACCESS_DENIED);
  expect(await talk(proxy.port, await helloFor(undefined), { keepOpen: true })).toBe(UNRECOGNIZED_NAME);
  // Cut off within the hello.
  expect(await talk(proxy.port, evil.subarray(0, 50))).toBe("");
  expect(proxy.lookups.length).toBe(before);
  expect(proxy.blocked).toEqual(
    expect.arrayContaining([
      { host: "evil.test", port: origin.port, reason: "not_allowed" },
      expect.objectContaining({ port: origin.port, reason: "unnamed" }),
    ]),
  );
});

test("a host that does not answer gives an alert, too", async () => {
  const names = { "gone.test": async () => Promise.reject(new Error("no such name")) };
  await using other = await startProxy(["gone.test"], { names, direct: { port: 443 } });
  expect(await talk(other.port, await helloFor("gone.test"), { keepOpen: true })).toBe(INTERNAL_ERROR);
});

test("who says nothing is cut off after a while, and is answered nothing", async () => {
  await using hurried = await startProxy([NAME], { limits: { head: 50 }, direct: { port: 443 } });
  expect(await talk(hurried.port, "", { keepOpen: true })).toBe("");
});

test("too many connections are cut off", async () => {
  await using small = await startProxy([NAME], { limits: { connections: 1 }, direct: { port: 443 } });
  const first = connect({ port: small.port, host: "127.0.0.1" });
  await expect.poll(() => small.proxy.connections).toBe(1);
  expect(await talk(small.port, "", { keepOpen: true })).toBe("");
  expect(small.proxy.connections).toBe(1);
  first.destroy();
});
