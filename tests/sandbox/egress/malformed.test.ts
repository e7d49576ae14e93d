import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Origin, startOrigin } from "../../support/egress/origin.js";
import { type RunningProxy, startProxy, statusOf, talk } from "../../support/egress/running-proxy.js";

const NAME = "allowed.test";
let origin: Origin;
let proxy: RunningProxy;
beforeAll(async () => {
  origin = await startOrigin();
  proxy = await startProxy([`${NAME}:${origin.port}`], { names: { [NAME]: "127.0.0.1" } });
});

afterAll(async () => {
  await proxy[Symbol.asyncDispose]();
  origin.close();
});

describe("requests that can be read in two ways", () => {
  const host = (): string => `${NAME}:${origin.port}`;
  const line = (): string => `POST http://${host()}/ HTTP/1.1\r\nHost: ${host()}\r\n`;

  test.each<[what: string, status: number, request: () => string]>([
    ["a length and chunks", 400, () => `${line()}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
    ["two lengths", 400, () => `${line()}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello`],
    ["the same length twice", 400, () => `${line()}Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello`],
    ["a list of lengths", 400, () => `${line()}Content-Length: 5, 5\r\n\r\nhello`],
    ["a signed length", 400, () => `${line()}Content-Length: +5\r\n\r\nhello`],
    ["a hexadecimal length", 400, () => `${line()}Content-Length: 0x5\r\n\r\nhello`],
    ["another coding", 400, () => `${line()}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`],
    ["a disguised coding", 400, () => `${line()}Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n`],
    ["chunks twice", 400, () => `${line()}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
    [
      "chunks of an old client",
      400,
      () => `POST http://${host()}/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    ["a folded line", 400, () => `${line()}X: 1\r\n 2\r\n\r\n`],
    ["a line end without CR", 400, () => `${line()}X: 1\nY: 2\r\n\r\n`],
    ["a CR alone", 400, () => `${line()}X: 1\rY: 2\r\n\r\n`],
    ["only LF", 400, () => `${line().replaceAll("\r", "")}\n`],
    ["a space before the colon", 400, () => `${line()}X : 1\r\n\r\n`],
    ["no colon", 400, () => `${line()}X\r\n\r\n`],
    ["a NUL", 400, () => `${line()}X: \0\r\n\r\n`],
    ["two spaces", 400, () => `GET  http://${host()}/ HTTP/1.1\r\nHost: ${host()}\r\n\r\n`],
    ["a tab", 400, () => `GET\thttp://${host()}/ HTTP/1.1\r\nHost: ${host()}\r\n\r\n`],
    ["an empty line first", 400, () => `\r\n${line()}\r\n`],
    ["no version", 400, () => `GET http://${host()}/\r\n\r\n`],
    ["another version", 400, () => `GET http://${host()}/ HTTP/2.0\r\nHost: ${host()}\r\n\r\n`],
    ["no proxy request", 400, () => `GET / HTTP/1.1\r\nHost: ${host()}\r\n\r\n`],
    ["another scheme", 400, () => `GET https://${host()}/ HTTP/1.1\r\nHost: ${host()}\r\n\r\n`],
    ["a file", 400, () => `GET file:///etc/passwd HTTP/1.1\r\nHost: ${host()}\r\n\r\n`],
    ["a fragment", 400, () => `GET http://${host()}/#x HTTP/1.1\r\nHost: ${host()}\r\n\r\n`],
    ["a tunnel to a path", 400, () => `CONNECT ${host()}/ HTTP/1.1\r\n\r\n`],
    ["a tunnel without a port", 400, () => `CONNECT ${NAME} HTTP/1.1\r\n\r\n`],
    ["a tunnel to an address", 400, () => `CONNECT http://${host()} HTTP/1.1\r\n\r\n`],
    ["no Host", 400, () => `GET http://${host()}/ HTTP/1.1\r\n\r\n`],
    ["two Hosts", 400, () => `GET http://${host()}/ HTTP/1.1\r\nHost: ${host()}\r\nHost: evil.test\r\n\r\n`],
    ["another Host", 400, () => `GET http://${host()}/ HTTP/1.1\r\nHost: evil.test\r\n\r\n`],
    ["the Host at another port", 400, () => `GET http://${host()}/ HTTP/1.1\r\nHost: ${NAME}:1\r\n\r\n`],
    ["an empty Host", 400, () => `GET http://${host()}/ HTTP/1.1\r\nHost:\r\n\r\n`],
    ["a head too long", 431, () => `${line()}X: ${"x".repeat(70_000)}\r\n\r\n`],
    ["a head without an end", 431, () => `${line()}${"X: x\r\n".repeat(12_000)}`],
    ["a method too long", 400, () => line().replace("POST", "X".repeat(33)).concat("\r\n")],
    ["half a head", 400, () => line()],
    ["another protocol", 400, () => "\x16\x03\x01\x00\x05hello\r\n\r\n"],
  ])("%s: %i", async (_what, status, message) => {
    const before = origin.requests.length;
    const lookups = proxy.lookups.length;
    expect(statusOf(await talk(proxy.port, message()))).toBe(status);
    expect([origin.requests.length, proxy.lookups.length]).toEqual([before, lookups]);
  });

  test.each([
    ["a chunk that is longer than it says", "5\r\nhello!\r\n0\r\n\r\n"],
    ["a size that is none", "xyz\r\nhello\r\n0\r\n\r\n"],
    ["a size with a sign", "-5\r\nhello\r\n0\r\n\r\n"],
    ["an extension", "5;a=b\r\nhello\r\n0\r\n\r\n"],
    ["a line end without CR", "5\nhello\r\n0\r\n\r\n"],
    ["another letter in the place of CR", "5!\nhello\r\n0\r\n\r\n"],
    ["a size without an end", `${"0".repeat(3000)}`],
    ["half a body", "5\r\nhel"],
  ])("in its body, %s: 400, and the origin never sees a whole request", async (_what, body) => {
    const before = origin.bodies.length;
    const answer = await talk(proxy.port, `${line()}Transfer-Encoding: chunked\r\n\r\n${body}`);
    expect(statusOf(answer)).toBe(400);
    expect(origin.bodies.length).toBe(before);
  });

  test("another Host is reported", async () => {
    await using own = await startProxy([host()], { names: { [NAME]: "127.0.0.1" } });
    await talk(own.port, `GET http://${host()}/ HTTP/1.1\r\nHost: evil.test:99\r\n\r\n`);
    expect(own.blocked).toEqual([{ host: "evil.test", port: 99, reason: "host_mismatch" }]);
  });
});
