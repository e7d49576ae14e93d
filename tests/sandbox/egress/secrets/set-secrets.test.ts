import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { NetworkEvent, SecretRule } from "../../../../contracts/types.js";
import { createLocalSandbox } from "../../../../src/sandbox/backends/local.js";
import type { Sandbox } from "../../../../src/sandbox/types.js";
import { openSandbox, removeSandbox } from "../../../../src/sandbox.js";
import { type SecretServer, startSecretServer } from "../../../support/egress/secret-server.js";
import { createScratch, type Scratch } from "../../../support/scratch.js";

const [ONE, TWO] = ["one.secret.test", "two.secret.test"];
const [VALUE, OTHER] = ["kept-outside-0123456789", "another-kept-9876543210"];
let scratch: Scratch;
let server: SecretServer;

beforeAll(async () => {
  scratch = createScratch();
  server = await startSecretServer(scratch.path, [ONE, TWO]);
});
afterAll(() => {
  server.close();
  scratch.remove();
  delete process.env["TEST_ONE"];
  delete process.env["TEST_TWO"];
});
afterEach(() => {
  server.asked.length = 0;
});

const at = (host: string): string => `${host}:${server.port}`;
const network = (): { allow: string[] } => ({ allow: [at(ONE), at(TWO)] });
const rule = (host: string): SecretRule => ({ hosts: [at(host)], header: "x-api-key" });

/** The placeholder that a command sends, and what the server gets. */
async function ask(
  sandbox: Sandbox,
  host: string,
  variable: string,
  flags = "",
): Promise<{ sent: string; got: unknown }> {
  const script = `curl -sS ${flags} -H "x-api-key: $${variable}" https://${at(host)}/ >/dev/null && printf %s "$${variable}"`;
  const { stdout, stderr } = await sandbox.shell(script);
  expect(stderr).toBe("");
  return { sent: stdout, got: server.asked.at(-1)?.headers["x-api-key"] };
}

beforeAll(() => {
  process.env["TEST_ONE"] = VALUE;
  process.env["TEST_TWO"] = OTHER;
});

describe("setSecrets", () => {
  test("gives an open sandbox its first secret, and then another one for another host", async () => {
    await using sandbox = await createLocalSandbox({ network: network() });
    await using handle = await openSandbox({ id: sandbox.id });
    await sandbox.setSecrets({ TEST_ONE: rule(ONE) });
    const first = await ask(sandbox, ONE, "TEST_ONE");
    expect(first).toEqual({ sent: expect.stringMatching(/^glovebox\w{32}$/), got: VALUE });
    await handle.setSecrets({ TEST_ONE: rule(ONE), TEST_TWO: rule(TWO) });
    // The placeholder of a secret that stays is the same, in every handle.
    expect(await ask(sandbox, ONE, "TEST_ONE")).toEqual(first);
    expect((await ask(handle, TWO, "TEST_TWO")).got).toBe(OTHER);
    expect((await sandbox.exec({ argv: ["env"] })).stdout).not.toMatch(/kept-outside|another-kept/);
    // Python, Node and git trust both, too.
    const python = `import urllib.request as u; print(u.urlopen("https://${at(TWO)}/").status)`;
    expect((await sandbox.exec({ argv: ["python3", "-c", python] })).stdout).toBe("200\n");
  });

  test("the first secret's host is trusted by a program that reads only the system's bundle", async ({ skip }) => {
    if (!existsSync("/usr/bin/wget")) skip("this machine has no wget");
    await using sandbox = await createLocalSandbox({ network: network() });
    const bundle = "/etc/ssl/certs/ca-certificates.crt";
    const count = async (): Promise<number> =>
      Number((await sandbox.exec({ argv: ["grep", "-c", "BEGIN CERTIFICATE", bundle] })).stdout);
    const before = await count();
    expect(before).toBe(readFileSync(bundle, "utf8").match(/BEGIN CERTIFICATE/g)?.length);
    await sandbox.setSecrets({ TEST_ONE: rule(ONE) });
    const script = 'exec env -i PATH="$PATH" https_proxy="$https_proxy" wget -qO- --header="x-api-key: $TEST_ONE" "$0"';
    const { exitCode, stderr } = await sandbox.exec({ argv: ["sh", "-c", script, `https://${at(ONE)}/`] });
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    expect(server.asked.at(-1)?.headers["x-api-key"]).toBe(VALUE);
    expect(await count()).toBe(before + 1);
  });

  test("a program that runs goes on trusting what it trusted", async () => {
    await using sandbox = await createLocalSandbox({ network: network(), secrets: { TEST_ONE: rule(ONE) } });
    const script = `
import os, sys, ssl, urllib.request as u
context = ssl.create_default_context()
for line in sys.stdin:
    request = u.Request("https://${at(ONE)}/", headers={"x-api-key": os.environ["TEST_ONE"]})
    opener = u.build_opener(u.ProxyHandler(), u.HTTPSHandler(context=context))
    print(opener.open(request).status, flush=True)`;
    await using child = await sandbox.spawn({ argv: ["python3", "-c", script], stdin: "pipe" });
    const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
    const writer = child.stdin?.getWriter();
    const next = async (): Promise<string | undefined> => {
      await writer?.write(Buffer.from("\n"));
      return (await reader.read()).value;
    };
    expect(await next()).toBe("200\n");
    await sandbox.setSecrets({ TEST_ONE: rule(ONE), TEST_TWO: rule(TWO) });
    expect(await next()).toBe("200\n");
    expect(server.asked.at(-1)?.headers["x-api-key"]).toBe(VALUE);
  });

  test("removes secrets: the variable is gone, and the old placeholder means nothing", async () => {
    await using sandbox = await createLocalSandbox({ network: network(), secrets: { TEST_ONE: rule(ONE) } });
    const { sent } = await ask(sandbox, ONE, "TEST_ONE");
    await sandbox.setSecrets({});
    expect((await sandbox.shell("printenv TEST_ONE")).stdout).toBe("");
    await sandbox.exec({ argv: ["curl", "-sSk", "-H", `x-api-key: ${sent}`, `https://${at(ONE)}/`] });
    expect(server.asked.at(-1)?.headers["x-api-key"]).toBe(sent);
  });

  test.each<[what: string, path: string, next: () => Record<string, SecretRule>]>([
    ["removed, and whose answer has not begun", "/late", () => ({})],
    ["removed, and whose answer has begun", "/open", () => ({})],
    ["replaced", "/late", () => ({ TEST_ONE: { ...rule(ONE), from: { env: "TEST_TWO" } } })],
    ["moved to another host", "/late", () => ({ TEST_ONE: rule(TWO) })],
  ])("cuts a request with a secret that is %s, and shows nothing of it", async (_, path, next) => {
    await using sandbox = await createLocalSandbox({ network: network(), secrets: { TEST_ONE: rule(ONE) } });
    const script = `curl -sSi -H "x-api-key: $TEST_ONE" https://${at(ONE)}${path}`;
    await using child = await sandbox.spawn({ argv: ["sh", "-c", script] });
    await expect.poll(() => server.asked.at(-1)?.headers["x-api-key"]).toBe(VALUE);
    await sandbox.setSecrets(next());
    server.goOn();
    const output = await text(child.stdout);
    expect(output).not.toContain(VALUE);
    expect((await child.wait()).exitCode).not.toBe(0);
  });

  test("leaves the requests of secrets that stay", async () => {
    const both = { TEST_ONE: rule(ONE), TEST_TWO: rule(TWO) };
    await using sandbox = await createLocalSandbox({ network: network(), secrets: both });
    const script = `curl -sS -H "x-api-key: $TEST_TWO" https://${at(TWO)}/late; printf ' %s' "$TEST_TWO"`;
    await using child = await sandbox.spawn({ argv: ["sh", "-c", script] });
    await expect.poll(() => server.asked.at(-1)?.headers["x-api-key"]).toBe(OTHER);
    await sandbox.setSecrets({ TEST_TWO: rule(TWO) });
    server.goOn();
    expect(await text(child.stdout)).toMatch(/^(glovebox\w{32}) \1$/);
  });

  test("a changed secret gets another placeholder, and its value is fetched again", async () => {
    await using sandbox = await createLocalSandbox({ network: network(), secrets: { TEST_ONE: rule(ONE) } });
    const before = await ask(sandbox, ONE, "TEST_ONE");
    await sandbox.setSecrets({ TEST_ONE: { ...rule(ONE), from: { env: "TEST_TWO" } } });
    const after = await ask(sandbox, ONE, "TEST_ONE");
    expect(after.got).toBe(OTHER);
    expect(after.sent).not.toBe(before.sent);
  });

  test("works after setNetwork in a sandbox that was opened without network", async () => {
    await using sandbox = await createLocalSandbox({});
    await expect(sandbox.setSecrets({ TEST_ONE: rule(ONE) })).rejects.toMatchObject({
      code: "invalid_argument",
      message: 'Secret TEST_ONE can\'t be used with network "none": nothing is reached',
    });
    await sandbox.setNetwork(network());
    await sandbox.setSecrets({ TEST_ONE: rule(ONE) });
    expect((await ask(sandbox, ONE, "TEST_ONE")).got).toBe(VALUE);
  });

  test.each<[string, string, () => Record<string, SecretRule>]>([
    ["without a value", "unauthenticated", () => ({ TEST_ONE: rule(ONE), TEST_GONE: rule(ONE) })],
    ["for a host that is not allowed", "invalid_argument", () => ({ TEST_ONE: { hosts: ["other.test"] } })],
    ["for an address", "invalid_argument", () => ({ TEST_ONE: { hosts: ["1.2.3.4"] } })],
    ["for no host", "invalid_argument", () => ({ TEST_ONE: { hosts: [] } })],
    ["whose variable env has", "invalid_argument", () => ({ OWN: { ...rule(ONE), from: { env: "TEST_ONE" } } })],
    ["that is no rule", "invalid_argument", () => ({ TEST_ONE: "x" }) as never],
  ])("refuses one %s, and changes nothing", async (_, code, secrets) => {
    const options = { network: network(), secrets: { TEST_TWO: rule(TWO) }, env: { OWN: "mine" } };
    await using sandbox = await createLocalSandbox(options);
    const before = (await sandbox.exec({ argv: ["env"] })).stdout;
    await expect(sandbox.setSecrets(secrets())).rejects.toMatchObject({ code });
    expect((await sandbox.exec({ argv: ["env"] })).stdout).toBe(before);
    expect((await ask(sandbox, TWO, "TEST_TWO")).got).toBe(OTHER);
  });

  test("is refused where commands reach hosts without the proxy", async () => {
    await using full = await createLocalSandbox({ network: "full" });
    await expect(full.setSecrets({ TEST_ONE: rule(ONE) })).rejects.toMatchObject({ code: "invalid_argument" });
    await using loose = await createLocalSandbox({ isolation: "none" });
    await expect(loose.setSecrets({ TEST_ONE: rule(ONE) })).rejects.toMatchObject({ code: "unsupported" });
  });

  test("is recorded: forks and the reopened sandbox have them, also without their hosts", async () => {
    const sandbox = await createLocalSandbox({ network: network(), keep: true });
    await sandbox.setSecrets({ TEST_ONE: rule(ONE) });
    const own = await ask(sandbox, ONE, "TEST_ONE");
    await using fork = await sandbox.fork();
    const forked = await ask(fork, ONE, "TEST_ONE");
    expect(forked.got).toBe(VALUE);
    expect(forked.sent).not.toBe(own.sent);
    await sandbox.teardown();
    const again = await openSandbox({ id: sandbox.id });
    expect((await ask(again, ONE, "TEST_ONE")).got).toBe(VALUE);
    await again.setNetwork("none");
    await again.teardown();
    const third = await openSandbox({ id: sandbox.id });
    await third.setNetwork(network());
    expect((await ask(third, ONE, "TEST_ONE")).got).toBe(VALUE);
    await third.teardown();
    await removeSandbox(sandbox.id);
  });
});

test("setNetwork gives a host of an open sandbox its first rule for requests", async () => {
  await using sandbox = await createLocalSandbox({ network: network(), secrets: { TEST_TWO: rule(TWO) } });
  const statusOf = async (...flags: string[]): Promise<string> =>
    (
      await sandbox.exec({
        argv: ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", ...flags, `https://${at(ONE)}/v1`],
      })
    ).stdout;
  await sandbox.setNetwork({ allow: [{ host: ONE, port: server.port, methods: ["GET"] }, at(TWO)] });
  expect([await statusOf(), await statusOf("-X", "POST")]).toEqual(["200", "403"]);
  expect((await ask(sandbox, TWO, "TEST_TWO")).got).toBe(OTHER);
});

test("the audit log has the names of logins whose tokens were exchanged, and no contents", async () => {
  const audit = join(scratch.path, "audit.jsonl");
  const login = { hosts: [at(ONE)], login: { tokenUrls: [`https://${at(TWO)}/token`] } };
  await using sandbox = await createLocalSandbox({ network: network(), secrets: { LOGIN: login }, audit });
  const post = `curl -sS -d grant_type=refresh_token -H "Accept: application/json" https://${at(TWO)}`;
  expect((await sandbox.shell(`${post}/token >/dev/null; ${post}/other >/dev/null`)).stderr).toBe("");
  const lines = (): NetworkEvent[] =>
    readFileSync(audit, "utf8")
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as NetworkEvent);
  const requests = lines().filter(({ event }) => event === "request");
  expect(requests.map(({ host, secrets }) => [host, secrets])).toEqual([
    [TWO, ["LOGIN"]],
    [TWO, undefined],
  ]);
  expect(readFileSync(audit, "utf8")).not.toContain("refresh_token");
});
