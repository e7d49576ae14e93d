import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { SandboxEvent } from "../../../../contracts/types.js";
import { createLocalSandbox } from "../../../../src/sandbox/backends/local.js";
import type { Sandbox } from "../../../../src/sandbox/types.js";
import { listen } from "../../../support/egress/running-proxy.js";
import { type SecretServer, startSecretServer } from "../../../support/egress/secret-server.js";
import { createScratch, type Scratch } from "../../../support/scratch.js";

const [API, OTHER] = ["api.secret.test", "other.secret.test"];
const VALUE = `sk-real/${"v".repeat(20)}+&"end`;
const PLAIN = "plain-token-0123456789";

let scratch: Scratch;
let server: SecretServer;
let sandbox: Sandbox;
const events: SandboxEvent[] = [];

beforeAll(async () => {
  scratch = createScratch();
  server = await startSecretServer(scratch.path, [API, OTHER]);
  process.env["TEST_API_KEY"] = VALUE;
  process.env["TEST_PLAIN"] = PLAIN;
  const at = (host: string): string => `${host}:${server.port}`;
  sandbox = await createLocalSandbox({
    network: { allow: [at(API), at(OTHER)] },
    secrets: {
      TEST_API_KEY: { hosts: [at(API)], header: "X-Api-Key", prefix: "sk-" },
      TEST_TOKEN: { hosts: [at(API)], from: { env: "TEST_PLAIN" } },
      TEST_QUERY: { hosts: [at(API)], in: "query", from: { env: "TEST_API_KEY" } },
      TEST_BODY: { hosts: [at(API)], in: "body", from: { env: "TEST_API_KEY" } },
    },
    onEvent: (event) => events.push(event),
  });
});

afterAll(async () => {
  await sandbox.teardown();
  server.close();
  scratch.remove();
  delete process.env["TEST_API_KEY"];
  delete process.env["TEST_PLAIN"];
});

const isHere = (program: string): boolean => spawnSync("which", [program]).status === 0;
const url = (path = "/", host = API): string => `https://${host}:${server.port}${path}`;

/** Runs a script that has the address of the server as $1; gives what it printed. */
async function run(script: string, address = url()): Promise<string> {
  const { stdout, stderr, exitCode } = await sandbox.shell(script.replaceAll("$1", address));
  expect(stderr).toBe("");
  expect(exitCode).toBe(0);
  return stdout;
}

describe("a command with a secret", () => {
  test("sees a placeholder", async () => {
    const { stdout } = await sandbox.exec({ argv: ["env"] });
    expect(stdout).toMatch(/^TEST_API_KEY=sk-glovebox[A-Za-z0-9]{32}$/m);
    expect(stdout).toMatch(/^TEST_TOKEN=glovebox[A-Za-z0-9]{32}$/m);
    expect(stdout).not.toContain(VALUE);
    expect(stdout).not.toContain(PLAIN);
  });

  test("sees none where no secret is set: it would be taken for a login", async () => {
    const has = async (box: Sandbox): Promise<string[]> =>
      [...(await box.exec({ argv: ["env"] })).stdout.matchAll(/^(\w+)=.*glovebox[A-Za-z0-9]{32}/gm)].map(
        ([, name]) => name ?? "",
      );
    expect((await has(sandbox)).sort()).toEqual(["TEST_API_KEY", "TEST_BODY", "TEST_QUERY", "TEST_TOKEN"]);
    await using other = await createLocalSandbox({
      network: { allow: ["api.anthropic.com", "api.openai.com", `${API}:${server.port}`] },
    });
    expect(await has(other)).toEqual([]);
    const known = "ANTHROPIC_API_KEY|ANTHROPIC_AUTH_TOKEN|OPENAI_API_KEY|GITHUB_TOKEN|GH_TOKEN|TEST_API_KEY";
    expect((await other.exec({ argv: ["env"] })).stdout).not.toMatch(new RegExp(`^(?:${known})=`, "m"));
  });

  test("sends the value by curl in a header, and gets the placeholder back", async () => {
    const shown = await run('curl -sS -i -H "X-Api-Key: $TEST_API_KEY" $1');
    expect(server.asked.at(-1)?.headers["x-api-key"]).toBe(VALUE);
    expect(shown).toMatch(/^HTTP\/1\.1 200 OK\r$/m);
    expect(shown).toMatch(/X-Reflected: sk-glovebox/);
    expect(shown).not.toMatch(/v{10}/);
    for (const form of [VALUE, JSON.stringify(VALUE).slice(1, -1), Buffer.from(VALUE).toString("base64").slice(4, 30)])
      expect(shown).not.toContain(form);
  });

  test.each([
    ["Bearer", '-H "Authorization: Bearer $TEST_TOKEN"', `Bearer ${PLAIN}`],
    ["Basic", '-u "me:$TEST_TOKEN"', `Basic ${Buffer.from(`me:${PLAIN}`).toString("base64")}`],
  ])("sends it in the scheme %s", async (_, flags, expected) => {
    await run(`curl -sS ${flags} $1`);
    expect(server.asked.at(-1)?.headers.authorization).toBe(expected);
  });

  test("sends it by Node", async () => {
    const script = `
      const http = require("http"), https = require("https"), { hostname, port } = new URL(process.env.https_proxy), url = new URL("$1");
      http.request({ host: hostname, port, method: "CONNECT", path: url.host })
        .on("connect", (_, socket) => https.get({ socket, agent: false, host: url.hostname, port: url.port, headers: { "X-Api-Key": process.env.TEST_API_KEY } }, (r) => r.pipe(process.stdout)))
        .end();`;
    await run(`node -e '${script}'`);
    expect(server.asked.at(-1)?.headers["x-api-key"]).toBe(VALUE);
  });

  test("sends it by Python", async ({ skip }) => {
    if (!isHere("python3")) skip("this machine has no python3");
    const script = `
import os, urllib.request
request = urllib.request.Request("$1", headers={"X-Api-Key": os.environ["TEST_API_KEY"]})
print(urllib.request.urlopen(request).read().decode())`;
    await run(`python3 -c '${script}'`);
    expect(server.asked.at(-1)?.headers["x-api-key"]).toBe(VALUE);
  });

  test("sends it in a query, encoded", async () => {
    await run('curl -sS "$1?a=$TEST_QUERY&b=2"');
    expect(server.asked.at(-1)?.url).toBe(`/?a=${encodeURIComponent(VALUE)}&b=2`);
  });

  test.each([
    ["text", "text/plain", VALUE],
    ["JSON", "application/json; charset=utf-8", JSON.stringify(VALUE).slice(1, -1)],
    ["a form", "application/x-www-form-urlencoded", encodeURIComponent(VALUE)],
  ])("sends it in a body of %s, with the right length", async (_, type, expected) => {
    await run(`curl -sS -H "Content-Type: ${type}" -d "key=$TEST_BODY." $1`);
    const { body, headers } = server.asked.at(-1) ?? {};
    expect(body).toBe(`key=${expected}.`);
    expect(headers?.["content-length"]).toBe(String(expected.length + 5));
  });

  test("sends it with a POST of 200 kB, in a header and at the end of the body", async () => {
    const headers = '-H "X-Api-Key: $TEST_API_KEY" -H "Content-Type: application/octet-stream"';
    const post = `curl -sS ${headers} --data-binary @large.bin $1pieces`;
    await run(`(head -c 200000 /dev/zero; printf %s "$TEST_BODY") > large.bin; ${post}`);
    expect(server.asked.at(-1)).toMatchObject({
      ...{ method: "POST", bytes: 200_000 + VALUE.length },
      headers: { "x-api-key": VALUE },
    });
    expect(server.asked.at(-1)?.body.endsWith(`\0${VALUE}`)).toBe(true);
  });

  test("gets an answer as it comes", async () => {
    const argv = ["sh", "-c", `exec curl -sSN -H "X-Api-Key: $TEST_API_KEY" ${url("/open")}`];
    await using curl = await sandbox.spawn({ argv });
    const reader = curl.stdout.getReader();
    const { value } = await reader.read();
    // The server writes the rest only now.
    server.goOn();
    expect(Buffer.from(value ?? []).toString()).toMatch(/^data: sk-glovebox\w{32}\n\n$/);
    const rest = await reader.read();
    expect(Buffer.from(rest.value ?? []).toString()).toBe("data: end\n\n");
    expect(await curl.wait()).toMatchObject({ exitCode: 0 });
  });

  test("that accepts no certificate but the host's own gets nothing, and is reported", async () => {
    const before = server.asked.length;
    const pin = `--pinnedpubkey sha256//${Buffer.alloc(32).toString("base64")}`;
    const { exitCode } = await sandbox.shell(`curl -sS ${pin} -H "X-Api-Key: $TEST_API_KEY" ${url()}`);
    expect(exitCode).toBe(90);
    const blocked = `blocked ${API}:${server.port}: the program broke off its TLS connection without a request`;
    await expect
      .poll(() => events.map((event) => ("message" in event ? event.message : "")))
      .toContainEqual(expect.stringContaining(blocked));
    expect(server.asked.length).toBe(before);
  });

  test.each([200_000, 100_000_000, 400_000_000])("sends it at the end of a body of %i bytes", async (size) => {
    let most = 0;
    const watch = setInterval(() => {
      most = Math.max(most, process.memoryUsage().arrayBuffers);
    }, 5);
    await run(`(head -c ${size} /dev/zero; printf %s "$TEST_BODY") | curl -sS -T - $1 >/dev/null`);
    expect(server.asked.at(-1)).toMatchObject({ method: "PUT", bytes: size + VALUE.length });
    if (size <= 4 << 20) expect(server.asked.at(-1)?.body.endsWith(`\0${VALUE}`)).toBe(true);
    clearInterval(watch);
    // What has not been collected yet counts, too: about 110 MB, whatever the size of the body.
    expect(most).toBeLessThan(256 << 20);
  });
});

test("a port of the secret's host that a rule says is plain stays so", async () => {
  const ssh = createServer((socket) => {
    socket.on("error", () => undefined).write("SSH-2.0-server\r\n");
    socket.once("data", (line: Buffer) => socket.end(line));
  });
  const port = await listen(ssh);
  const hosts = [`${API}:${server.port}`];
  await using own = await createLocalSandbox({
    network: { allow: [...hosts, `plain://${API}:${port}`] },
    secrets: { TEST_API_KEY: { hosts, header: "X-Api-Key" } },
  });
  try {
    const talk = `exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT ${API}:${port} HTTP/1.1\\r\\n\\r\\n' >&3
      read -r -t 20 first <&3; read -r -t 20 empty <&3; read -r -t 20 greeting <&3
      echo "$first $greeting"; printf '%s' "$TEST_API_KEY" >&3; timeout 20 cat <&3`;
    const { stdout } = await own.exec({ argv: ["bash", "-c", talk] });
    expect(stdout).toMatch(/^HTTP\/1\.1 200 Connection established\r SSH-2\.0-server\r\nglovebox\w{32}$/);
    await own.shell(`curl -sS -H "X-Api-Key: $TEST_API_KEY" ${url()}`);
    expect(server.asked.at(-1)?.headers["x-api-key"]).toBe(VALUE);
  } finally {
    ssh.close();
  }
});

describe("the value stays out", () => {
  test("of requests to other hosts", async () => {
    const placeholder = await run('printf %s "$TEST_TOKEN"');
    await run('curl -sSk -H "X-Api-Key: $TEST_API_KEY" -H "Authorization: Bearer $TEST_TOKEN" $1', url("/", OTHER));
    const { headers } = server.asked.at(-1) ?? {};
    expect(headers?.["x-api-key"]).toMatch(/^sk-glovebox/);
    expect(headers?.authorization).toBe(`Bearer ${placeholder}`);
  });

  test("of other headers, the path, the query and the body", async () => {
    await run('curl -sS -H "X-Other: $TEST_API_KEY" -d "$TEST_API_KEY" "$1$TEST_API_KEY?key=$TEST_API_KEY"');
    const { url: path, headers, body } = server.asked.at(-1) ?? {};
    for (const text of [path, headers?.["x-other"], body]) expect(text).toMatch(/sk-glovebox\w{32}$/);
    expect(JSON.stringify(server.asked.at(-1))).not.toMatch(/v{10}/);
  });

  test("of a redirect to another host", async () => {
    const flags = '-H "X-Api-Key: $TEST_API_KEY" -L --max-redirs 3';
    await run(`curl -sSk ${flags} "$1elsewhere=${OTHER}:${server.port}"`);
    const { host, url: path, headers } = server.asked.at(-1) ?? {};
    expect(host).toBe(`${OTHER}:${server.port}`);
    expect(path).toMatch(/^\/\?key=sk-glovebox\w{32}$/);
    expect(headers?.["x-api-key"]).toMatch(/^sk-glovebox/);
  });

  test.each([
    ["another Host", `-H "Host: ${OTHER}"`],
    ["another name in TLS", `--connect-to ${OTHER}::${API}:`],
  ])("of a request with %s", async (_, flags) => {
    const before = server.asked.length;
    const target = flags.includes("connect-to") ? url("/", OTHER) : url();
    await sandbox.shell(`curl -sS -m 10 -H "X-Api-Key: $TEST_API_KEY" ${flags} ${target}`);
    for (const { headers } of server.asked.slice(before)) expect(headers["x-api-key"]).toMatch(/^sk-glovebox/);
  });

  test("of a request without TLS", async () => {
    const before = server.asked.length;
    const { stdout } = await sandbox.shell(
      `curl -sS -m 10 -H "X-Api-Key: $TEST_API_KEY" http://${API}:${server.port}/; true`,
    );
    expect(server.asked.length).toBe(before);
    expect(stdout).not.toMatch(/v{10}/);
  });

  test("of a program that accepts the host's own certificate only: it is blocked, with a warning", async () => {
    await sandbox.writeFile("own.pem", readFileSync(join(scratch.path, "cert.pem")));
    const before = server.asked.length;
    const { exitCode } = await sandbox.shell(
      `curl -sS --cacert own.pem --capath /none -H "X-Api-Key: $TEST_API_KEY" ${url()}`,
    );
    expect(exitCode).toBe(60);
    expect(server.asked.length).toBe(before);
    const warnings = (): string[] => events.filter(({ type }) => type === "warning").map(({ message }) => message);
    await expect
      .poll(warnings)
      .toContainEqual(expect.stringContaining("does not accept the sandbox's own certificate"));
  });

  test("of answers that repeat it byte by byte", async () => {
    const shown = await run('curl -sS -H "X-Api-Key: $TEST_API_KEY" $1pieces');
    expect(shown).toMatch(/^you sent sk-glovebox\w{32}\.$/);
  });

  test("of answers that a program asks for in parts, or compressed", async () => {
    await run('curl -sS --compressed -r 0-5 -H "X-Api-Key: $TEST_API_KEY" $1');
    expect(server.asked.at(-1)?.headers).toMatchObject({ "accept-encoding": "identity" });
    expect(server.asked.at(-1)?.headers.range).toBeUndefined();
  });

  test("of files, processes and the memory of everything inside", async () => {
    await sandbox.exec({ argv: ["sh", "-c", "env > env.txt; set > set.txt"] });
    const places = '/proc/[0-9]*/environ /proc/[0-9]*/cmdline /tmp /etc /glovebox "$HOME" .';
    const { stdout } = await sandbox.shell(`grep -rslE 'sk-[r]eal|plain[-]token' ${places}`);
    expect(stdout).toBe("");
    // The same search finds what is there.
    expect((await sandbox.shell(`grep -rslE 'gloveboxp?[A-Za-z0-9]{32}' ${places}`)).stdout).toContain("./env.txt");
  });

  test("of events, errors and the record", async () => {
    await expect(sandbox.exec({ argv: ["true", VALUE], cwd: `/${VALUE}` })).rejects.not.toThrow(/v{10}/);
    await sandbox.exec({ argv: ["echo", VALUE] });
    expect(events.length).toBeGreaterThan(2);
    expect(JSON.stringify(events)).not.toMatch(/v{10}/);
    expect(JSON.stringify(events)).not.toContain(PLAIN);
  });
});
