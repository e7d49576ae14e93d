import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { SandboxOptions } from "../../../../contracts/sandbox.js";
import { openSandbox } from "../../../../src/sandbox.js";
import { createScratch, type Scratch } from "../../../support/scratch.js";

let scratch: Scratch;

beforeAll(() => {
  scratch = createScratch();
  process.env["TEST_KEY"] = "value-0123456789";
});
afterAll(() => {
  delete process.env["TEST_KEY"];
  scratch.remove();
});

const network = { allow: ["a.test"] };
const login = (url: string): object => ({ hosts: ["a.test"], login: { tokenUrls: [url] } });

/** Every one is refused before anything is made. */
async function refused(opts: object, backend = "local"): Promise<unknown> {
  const failure = await openSandbox({ backend, network, ...opts } as SandboxOptions).then(
    async (sandbox) => await sandbox.teardown(),
    (error: unknown) => error,
  );
  const records = join(scratch.home, "sandboxes");
  expect(existsSync(records) ? readdirSync(records) : []).toEqual([]);
  expect(String(failure)).not.toContain("value-0123456789");
  return failure;
}

describe("a secret is refused", () => {
  test.each([
    ["with no host", { hosts: [] }, "at least one host"],
    ["without hosts", {}, "at least one host"],
    ["for every host", { hosts: ["*"] }, "a name such as"],
    ["for a wildcard", { hosts: ["*.a.test"] }, '"*.a.test" is more than one host'],
    ["for an address", { hosts: ["93.184.216.34"] }, "a name, not an address"],
    ["for an IPv6 address", { hosts: ["[2606:2800::1]:443"] }, "a name, not an address"],
    ["for a bare IPv6 address", { hosts: ["2606:2800::1"] }, "a name, not an address"],
    ["for an address in another notation", { hosts: ["0x7f.1"] }, "a name such as"],
    ["for a name without a dot", { hosts: ["localhost"] }, "a name with a dot in it"],
    ["for a URL", { hosts: ["https://a.test/"] }, "a name without a scheme"],
    ["for a path", { hosts: ["a.test/v1"] }, "a name such as"],
    ["for a bad port", { hosts: ["a.test:99999"] }, "a name such as"],
    ["with a header that is none", { hosts: ["a.test"], header: "x api key" }, "the name of a header"],
    ["with an empty header", { hosts: ["a.test"], header: "" }, "the name of a header"],
    ["with a header with a line end", { hosts: ["a.test"], header: "x-key\r\nx" }, "the name of a header"],
    ["with the header Host", { hosts: ["a.test"], header: "Host" }, "a header that can carry a secret"],
    ["with a header in the query", { hosts: ["a.test"], in: "query", header: "x-key" }, "does not go together"],
    ["in another place", { hosts: ["a.test"], in: "path" }, "in"],
    ["with a prefix that URLs change", { hosts: ["a.test"], prefix: "a b" }, "at most 64 letters"],
    ["from nowhere", { hosts: ["a.test"], from: {} }, "one of env, file, command"],
    ["from two places", { hosts: ["a.test"], from: { env: "A", file: "/a" } }, "one of env, file, command"],
    ["from a relative file", { hosts: ["a.test"], from: { file: "token" } }, "an absolute path"],
    ["from a line for a shell", { hosts: ["a.test"], from: { command: "cat /x" } }, "from.command"],
    ["from no program", { hosts: ["a.test"], from: { command: [] } }, "a program and its arguments"],
    ["from a relative program", { hosts: ["a.test"], from: { command: ["./get"] } }, "absolute path"],
    ["from a bad variable", { hosts: ["a.test"], from: { env: "A-B" } }, "the name of a variable"],
    ["with a login at an address", login("https://93.184.216.34/token"), "with the name of a host"],
    ["with a login at a name without a dot", login("https://localhost/token"), "with the name of a host"],
    ["with a login at every host", login("https://*.a.test/token"), "with the name of a host"],
    ["with a login without TLS", login("http://a.test/token"), "an https:// address"],
    [
      "with a login and a header",
      { ...login("https://a.test/token"), header: "x-key" },
      "does not go together with login",
    ],
    ["with an unknown field", { hosts: ["a.test"], value: "x" }, "value"],
  ])("%s", async (_, rule, message) => {
    expect(await refused({ secrets: { TEST_KEY: rule } })).toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining(message),
    });
  });

  test("by a name that is no variable", async () => {
    expect(await refused({ secrets: { "TEST-KEY": { hosts: ["a.test"] } } })).toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("TEST-KEY"),
    });
  });

  test("that is in env, too", async () => {
    const secrets = { TEST_KEY: { hosts: ["a.test"] } };
    expect(await refused({ secrets, env: { TEST_KEY: "x" } })).toMatchObject({
      code: "invalid_argument",
      message: "Variable TEST_KEY is in secrets and in env",
    });
  });

  test.each([
    ["none", 'Secret TEST_KEY can\'t be used with network "none"'],
    ["full", 'Secret TEST_KEY can\'t be used with network "full"'],
    [undefined, 'Secret TEST_KEY can\'t be used with network "none"'],
    [{ allow: ["b.test"] }, "Secret TEST_KEY is for a.test, which network.allow does not have"],
    [{ allow: ["a.test:80"] }, "Secret TEST_KEY is for a.test, which network.allow does not have"],
  ])("with the network %j", async (rule, message) => {
    expect(await refused({ secrets: { TEST_KEY: { hosts: ["a.test"] } }, network: rule })).toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining(message),
      hint: expect.stringContaining("--network allow=a.test"),
    });
  });

  test("whose token endpoint the network does not have", async () => {
    expect(await refused({ secrets: { LOGIN: login("https://auth.test:8443/token") } })).toMatchObject({
      code: "invalid_argument",
      message: "Secret LOGIN is for auth.test:8443, which network.allow does not have",
    });
  });

  test("that has no value", async () => {
    expect(await refused({ secrets: { TEST_MISSING: { hosts: ["a.test"] } } })).toMatchObject({
      code: "unauthenticated",
      message: "Secret TEST_MISSING has no value: its variable is not set",
      hint: expect.stringContaining("export TEST_MISSING="),
    });
  });

  test.each([
    ["fails", { command: ["false"] }, "exited with 1"],
    ["hangs", { command: ["sleep", "1000"], timeout: 200 }, "was not done after 200 ms"],
    ["is not there", { command: ["no-such-program"] }, "is not in PATH"],
  ])("whose program %s", async (_, from, message) => {
    expect(await refused({ secrets: { TEST_KEY: { hosts: ["a.test"], from } } })).toMatchObject({
      code: "unauthenticated",
      message: expect.stringContaining(message),
    });
  });

  test.each([
    ["local", { isolation: "none", network: "full" }],
    ["daytona", { daytona: { apiKey: "key-0123456789" } }],
    ["vercel", {}],
    ["dagger", { network: "full" }],
  ])("by the backend %s, which can't keep it outside", async (backend, opts) => {
    expect(await refused({ secrets: { TEST_KEY: { hosts: ["a.test"] } }, ...opts }, backend)).toMatchObject({
      code: "unsupported",
      message: expect.stringContaining("can't keep secret TEST_KEY outside: "),
    });
  });
});
