import { execFileSync } from "node:child_process";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { SandboxOptions } from "../../../../contracts/sandbox.js";
import type { Sandbox } from "../../../../src/sandbox/types.js";
import { deleteSnapshot, openSandbox, removeSandbox } from "../../../../src/sandbox.js";
import { type SecretServer, startSecretServer } from "../../../support/egress/secret-server.js";
import { createScratch, type Scratch } from "../../../support/scratch.js";

const API = "api.secret.test";
const VALUE = "kept-outside-0123456789";
let scratch: Scratch;
let server: SecretServer;

beforeAll(async () => {
  scratch = createScratch();
  process.env["TEST_KEY"] = VALUE;
  server = await startSecretServer(scratch.path, [API]);
});
afterAll(() => {
  delete process.env["TEST_KEY"];
  server.close();
  scratch.remove();
});

const options = (): SandboxOptions => ({
  network: { allow: [`${API}:${server.port}`] },
  secrets: { TEST_KEY: { hosts: [`${API}:${server.port}`], header: "x-api-key" } },
});

/** The key that the server gets when a command of the sandbox asks it, and the placeholder that the command sent. */
async function ask(sandbox: Sandbox): Promise<{ sent: string; got: unknown }> {
  const url = `https://${API}:${server.port}/`;
  const { stdout } = await sandbox.shell(`curl -sS -H "x-api-key: $TEST_KEY" ${url} >/dev/null; printf %s "$TEST_KEY"`);
  return { sent: stdout, got: server.asked.at(-1)?.headers["x-api-key"] };
}

/** The files below the home of Glovebox that contain the value. */
function written(): string {
  try {
    return execFileSync("grep", ["-rlaF", VALUE, scratch.home], { encoding: "utf8" });
  } catch (error) {
    return (error as { stdout: string }).stdout;
  }
}

test("a kept sandbox fetches its secrets again, and its record has no value", async () => {
  const first = await openSandbox({ backend: "local", keep: true, ...options() });
  const one = await ask(first);
  expect(one.got).toBe(VALUE);
  expect(written()).toBe("");
  await first.teardown();
  expect(written()).toBe("");

  process.env["TEST_KEY"] = "another-value-9876543210";
  const second = await openSandbox({ id: first.id });
  const two = await ask(second);
  expect(two.got).toBe("another-value-9876543210");
  expect(two.sent).toMatch(/^glovebox\w{32}$/);
  expect(two.sent).not.toBe(one.sent);
  await second.teardown();

  delete process.env["TEST_KEY"];
  await expect(openSandbox({ id: first.id })).rejects.toMatchObject({
    code: "unauthenticated",
    message: "Secret TEST_KEY has no value: its variable is not set",
  });
  process.env["TEST_KEY"] = VALUE;
  const third = await openSandbox({ id: first.id, secrets: {} });
  expect((await third.shell('printf %s "$TEST_KEY"')).stdout).toBe("");
  await third.teardown();
  await removeSandbox(first.id);
});

test("forks have placeholders of their own, and those of others mean nothing there", async () => {
  await using sandbox = await openSandbox({ backend: "local", ...options() });
  await using fork = await sandbox.fork();
  const [one, two] = [await ask(sandbox), await ask(fork)];
  expect([one.got, two.got]).toEqual([VALUE, VALUE]);
  expect(one.sent).not.toBe(two.sent);
  const url = `https://${API}:${server.port}/`;
  await fork.exec("curl", ["-sS", "-H", `x-api-key: ${one.sent}`, url]);
  expect(server.asked.at(-1)?.headers["x-api-key"]).toBe(one.sent);
});

test("a snapshot has no value in it, and a sandbox that starts from it asks for its own", async () => {
  await using sandbox = await openSandbox({ backend: "local", ...options() });
  await ask(sandbox);
  await sandbox.shell("env > env.txt");
  const snapshot = await sandbox.snapshot();
  expect(written()).toBe("");
  await using other = await openSandbox({ backend: "local", snapshot });
  expect(await other.readFile("env.txt")).toContain("TEST_KEY=glovebox");
  expect((await other.shell('printf %s "$TEST_KEY"')).stdout).toBe("");
  await deleteSnapshot(snapshot);
});

test("no process of this machine has the value in its arguments, and none but this one in its environment", async () => {
  await using sandbox = await openSandbox({ backend: "local", ...options() });
  delete process.env["TEST_KEY"];
  await using running = await sandbox.spawn({ argv: ["sleep", "1000"] });
  expect((await ask(sandbox)).got).toBe(VALUE);
  const search = `grep -lsaF -- "$(cat)" /proc/[0-9]*/cmdline /proc/[0-9]*/environ || true`;
  const found = execFileSync("sh", ["-c", search], {
    input: VALUE,
    encoding: "utf8",
    env: { PATH: process.env["PATH"] },
  });
  // Whoever started this process may have had the variable.
  expect(found.split("\n").filter((path) => path !== "" && !path.includes(`/${process.pid}/`))).toEqual([]);
  await running.kill();
  process.env["TEST_KEY"] = VALUE;
});
