import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { NetworkRules, SandboxEvent } from "../../../contracts/types.js";
import { egressInternals } from "../../../src/sandbox/egress/open-egress.js";
import { parseUpstream, upstreamFor } from "../../../src/sandbox/egress/upstream/parse-upstream.js";
import { readAuthorities } from "../../../src/sandbox/egress/upstream/read-authorities.js";
import { createLocalSandbox } from "../../../src/sandbox/local.js";
import { type Certificate, createCertificate } from "../../support/egress/certificate.js";
import { type GitServer, startGitServer } from "../../support/egress/git-server.js";
import { startUpstream, type UpstreamServer } from "../../support/egress/upstream-server.js";
import { createScratch, type Scratch } from "../../support/scratch.js";

const NAME = "api.example.com";
const PASSWORD = "correct-horse-battery";
const BASIC = `Basic ${Buffer.from(`someone:${PASSWORD}`).toString("base64")}`;

describe("the upstream proxy", () => {
  test("is that of the variables, with their exceptions", () => {
    const find = upstreamFor(undefined, {
      https_proxy: "http://a.corp:3128",
      HTTPS_PROXY: "http://never.corp:1",
      HTTP_PROXY: "b.corp:8080",
      NO_PROXY: ".internal.example, direct.example:8443,1.2.3.4",
    });
    expect(find("example.com", 443)).toEqual({ host: "a.corp", port: 3128 });
    expect(find("example.com", 80)).toEqual({ host: "b.corp", port: 8080 });
    expect(find("x.internal.example", 443)).toBeUndefined();
    expect(find("internal.example", 443)).toBeUndefined();
    expect(find("xinternal.example", 443)).toBeDefined();
    expect([find("direct.example", 8443), find("1.2.3.4", 443)]).toEqual([undefined, undefined]);
    expect(find("direct.example", 443)).toBeDefined();
    expect(
      upstreamFor(undefined, { HTTPS_PROXY: "http://a.corp:1", NO_PROXY: "*" })("example.com", 443),
    ).toBeUndefined();
    expect(upstreamFor(undefined, {})("example.com", 443)).toBeUndefined();
  });

  test("is the one that the rules name, with the password of the variables for it and no other", () => {
    const variables = { HTTPS_PROXY: `http://someone:${PASSWORD}@a.corp:3128`, NO_PROXY: "*" };
    expect(upstreamFor("http://a.corp:3128", variables)("example.com", 443)?.authorization).toBe(BASIC);
    expect(upstreamFor("http://b.corp:3128", variables)("example.com", 443)).toEqual({ host: "b.corp", port: 3128 });
    expect(upstreamFor("none", variables)("example.com", 443)).toBeUndefined();
  });

  test.each([
    "",
    "a.corp:3128",
    "https://a.corp:3128",
    "socks5://a.corp:1080",
    "http://a.corp/x",
    "http://a.corp:3128?x",
  ])("can't be %j", (text) => {
    expect(() => parseUpstream(text, "network.upstream")).toThrow(
      /^Invalid network.upstream: expected "http:\/\/host:port"/,
    );
  });

  test("has no password in an option, and no error shows one", () => {
    const refused = (work: () => unknown): unknown => {
      try {
        return work();
      } catch (error) {
        return `${error}${JSON.stringify(error)}`;
      }
    };
    const named = refused(() => parseUpstream(`http://someone:${PASSWORD}@a.corp:3128`, "network.upstream"));
    const odd = refused(() => upstreamFor(undefined, { HTTPS_PROXY: `socks5://someone:${PASSWORD}@a.corp:1080` }));
    expect(named).toContain("without a password");
    expect(odd).toContain("Invalid HTTPS_PROXY");
    expect(`${named}${odd}`).not.toContain(PASSWORD);
    // As people write them who have not encoded what an address does not allow.
    for (const text of ["https://me:p@SECRET@a.corp:1", "http://me:p/SECRET@a.corp:1", "socks5://me:SECRET#1@a.corp"]) {
      for (const work of [() => upstreamFor(undefined, { HTTPS_PROXY: text }), () => parseUpstream(text, "upstream")]) {
        expect(refused(work)).toMatch(/^SandboxError: Invalid .*\*\*\*@a\.corp/);
        expect(refused(work)).not.toContain("SECRET");
      }
    }
  });

  test("has the password as it is, also where it is no text in UTF-8", () => {
    const find = upstreamFor(undefined, { HTTPS_PROXY: "http://us%zz:p%C3%A4ss%e4@a.corp:1" });
    const password = Buffer.concat([Buffer.from("us%zz:päss"), Buffer.from([0xe4])]);
    expect(find("example.com", 443)?.authorization).toBe(`Basic ${password.toString("base64")}`);
  });
});

describe("a sandbox behind an upstream proxy", () => {
  let scratch: Scratch;
  let certificate: Certificate;
  let origin: GitServer;
  let upstream: UpstreamServer;
  let route: Pick<NetworkRules, "upstream" | "ca">;

  beforeAll(async () => {
    scratch = createScratch();
    certificate = createCertificate(scratch.path, [NAME]);
    origin = await startGitServer(scratch.path, certificate);
    upstream = await startUpstream(BASIC);
    route = { upstream: `http://127.0.0.1:${upstream.port}`, ca: certificate.path };
    egressInternals.variables = { HTTPS_PROXY: `http://someone:${PASSWORD}@127.0.0.1:${upstream.port}` };
  });
  afterEach(() => {
    upstream.asked.length = 0;
  });
  afterAll(() => {
    origin.close();
    upstream.close();
    delete egressInternals.variables;
    scratch.remove();
  });

  const url = (path: string): string => `https://${NAME}:${origin.port}${path}`;
  const curl = (...args: string[]): string[] => ["curl", "-sS", "-w", "%{http_code}", ...args];

  test("reaches hosts through it, end to end, and trusts the further authority", async () => {
    await using sandbox = await createLocalSandbox({ network: { allow: [`${NAME}:${origin.port}`], ...route } });
    expect(await sandbox.exec({ argv: curl(url("/x")) })).toMatchObject({ stdout: "GET /x\n200", stderr: "" });
    expect(upstream.asked).toEqual([`${NAME}:${origin.port} ${BASIC}`]);
    const { stdout } = await sandbox.exec({ argv: ["env"] });
    expect(stdout).not.toContain(PASSWORD);
    expect(stdout).not.toContain(`:${upstream.port}`);
  });

  test("has its rules applied before, and the origin's certificate verified", async () => {
    const allow = [{ host: NAME, port: origin.port, methods: ["GET"] }];
    await using sandbox = await createLocalSandbox({ network: { allow, ...route } });
    expect((await sandbox.exec({ argv: curl(url("/x")) })).stdout).toBe("GET /x\n200");
    const before = upstream.asked.length;
    expect((await sandbox.exec({ argv: curl("-X", "DELETE", url("/x")) })).stdout).toMatch(/403$/);
    expect((await sandbox.exec({ argv: curl("https://other.example/") })).stderr).toContain("403");
    expect(upstream.asked.length).toBe(before);
  });

  test("has its secrets put in for the origin, of which the proxy on the way learns nothing", async () => {
    process.env["TEST_UPSTREAM"] = "kept-outside-0123456789";
    const hosts = [`${NAME}:${origin.port}`];
    const secrets = { TEST_UPSTREAM: { hosts, in: "query" as const } };
    const ask = ["sh", "-c", `curl -sS "${url("/x")}?key=$TEST_UPSTREAM"`];
    try {
      await using sandbox = await createLocalSandbox({ network: { allow: hosts, ...route }, secrets });
      expect((await sandbox.exec({ argv: ask })).stdout).toMatch(/^GET \/x\?key=glovebox\w{32}\n$/);
      expect(origin.requests.at(-1)).toBe("GET /x?key=kept-outside-0123456789");
      expect(upstream.asked).toEqual([`${NAME}:${origin.port} ${BASIC}`]);
      const before = origin.requests.length;
      const network = { allow: hosts, upstream: route.upstream ?? "" };
      await using other = await createLocalSandbox({ network, secrets });
      expect((await other.exec({ argv: ask })).stdout).toContain("no verified TLS connection");
      expect(origin.requests.length).toBe(before);
    } finally {
      delete process.env["TEST_UPSTREAM"];
    }
  });

  test("does not accept a certificate of that authority without it", async () => {
    const allow = [{ host: NAME, port: origin.port, methods: ["GET"] }];
    await using sandbox = await createLocalSandbox({ network: { allow, upstream: route.upstream ?? "" } });
    expect((await sandbox.exec({ argv: curl(url("/x")) })).stdout).toContain("no verified TLS connection");
  });

  test("is told what is wrong with the password, and no file has it", async () => {
    const known = egressInternals.variables;
    egressInternals.variables = {};
    try {
      const network = { allow: [`${NAME}:${origin.port}`], ...route };
      const events: SandboxEvent[] = [];
      const onEvent = (event: SandboxEvent): void => void events.push(event);
      await using sandbox = await createLocalSandbox({ network, keep: true, onEvent });
      const { stderr } = await sandbox.exec({ argv: ["curl", "-sS", "-v", url("/x")] });
      const why = "the upstream proxy wants a password, which goes into HTTPS_PROXY";
      // All that a program shows of the answer to CONNECT.
      expect(stderr).toContain(`< HTTP/1.1 502 Bad Gateway by glovebox: ${why}`);
      expect(events.filter(({ type }) => type === "warning").map(({ message }) => message)).toEqual([
        `blocked ${NAME}:${origin.port}: the upstream proxy did not accept the user or the password`,
      ]);
      egressInternals.variables = known ?? {};
      const all = readdirSync(scratch.home, { recursive: true, withFileTypes: true, encoding: "utf8" });
      const files = all.filter((each) => each.isFile() && each.name.endsWith(".json"));
      expect(files.length).toBeGreaterThan(0);
      for (const { parentPath, name } of files)
        expect(readFileSync(join(parentPath, name), "utf8")).not.toContain(PASSWORD);
    } finally {
      egressInternals.variables = known ?? {};
    }
  });

  test("never asks it for an address that is not public, nor for a private host", async () => {
    const network = { allow: [{ host: "wiki.example", port: origin.port, private: true }], ...route };
    await using sandbox = await createLocalSandbox({ network });
    const { stderr } = await sandbox.exec({ argv: curl(`https://wiki.example:${origin.port}/`) });
    expect(stderr).toMatch(/502|504/);
    expect(upstream.asked).toEqual([]);
  });

  test.each<[string, () => string, RegExp]>([
    ["missing", () => join(scratch.path, "nowhere.pem"), /can't be read: ENOENT/],
    ["relative", () => "ca.pem", /not an absolute path/],
    ["no certificate", () => write("empty.pem", "hello"), /no certificate/],
    ["a key", () => write("key-too.pem", `${certificate.cert}${certificate.key}`), /private key/],
    [
      "damaged",
      () => write("bad.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
      /number 1 can't be read/,
    ],
  ])("refuses a file of authorities that is %s, before anything is made", async (_what, path, message) => {
    expect(() => readAuthorities(path())).toThrow(message);
    await expect(createLocalSandbox({ network: { allow: [], ca: path() } })).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("network.ca"),
    });
  });

  function write(name: string, text: string): string {
    const path = join(scratch.path, name);
    writeFileSync(path, text);
    return path;
  }
});
