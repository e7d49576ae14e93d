import { afterAll, beforeAll, expect, test } from "vitest";
import { parseRules } from "../../../../src/sandbox/egress/policy.js";
import { type Origin, startOrigin } from "../../../support/egress/origin.js";
import { type RunningProxy, startProxy, statusOf, talk } from "../../../support/egress/running-proxy.js";

const NAME = "api.example.com";
let origin: Origin;
let proxy: RunningProxy;

beforeAll(async () => {
  origin = await startOrigin();
  const allow = [
    { host: NAME, port: origin.port, methods: ["GET"], paths: ["/v1/**"] },
    `open.example.com:${origin.port}`,
  ];
  const policy = parseRules({ allow, deny: [{ host: "open.example.com", paths: ["/admin/**"] }] });
  proxy = await startProxy([], { policy, names: { [NAME]: "127.0.0.1", "open.example.com": "127.0.0.1" } });
});
afterAll(async () => {
  await proxy[Symbol.asyncDispose]();
  origin.close();
});

const request = (line: string, host = `${NAME}:${origin.port}`, more = ""): Promise<string> =>
  talk(proxy.port, `${line} HTTP/1.1\r\nHost: ${host}\r\n${more}\r\n`);
const at = (path: string, name = NAME): string => `http://${name}:${origin.port}${path}`;

test("a request in plain HTTP that the rules allow passes", async () => {
  expect(statusOf(await request(`GET ${at("/v1/x")}`))).toBe(200);
  expect(origin.requests.at(-1)?.url).toBe("/v1/x");
});

test.each<[string, () => Promise<string>, number]>([
  ["another method", () => request(`DELETE ${at("/v1/x")}`), 403],
  ["a method in lower case", () => request(`get ${at("/v1/x")}`), 403],
  ["another path", () => request(`GET ${at("/v2/x")}`), 403],
  ["no path", () => request(`GET ${at("")}`), 403],
  ["a path that climbs", () => request(`GET ${at("/v1/../v2")}`), 403],
  ["an encoded path that climbs", () => request(`GET ${at("/v1/%2E%2e/v2")}`), 403],
  ["two slashes", () => request(`GET ${at("//v1/x")}`), 403],
  ["another Host", () => request(`GET ${at("/v1/x")}`, `open.example.com:${origin.port}`), 400],
  ["a header that names another path", () => request(`GET ${at("/v1/x")}`, undefined, "X-Original-URL: /v2\r\n"), 403],
  ["a path without its host", () => request("GET /v1/x"), 400],
  ["a denied path", () => request(`GET ${at("/ADMIN/x", "open.example.com")}`, `open.example.com:${origin.port}`), 403],
  [
    "a tunnel to a host whose requests have rules, without an authority",
    () => request(`CONNECT ${NAME}:${origin.port}`),
    403,
  ],
])("%s does not reach the server", async (_what, send, status) => {
  const before = origin.requests.length;
  expect(statusOf(await send())).toBe(status);
  expect(origin.requests.length).toBe(before);
});
