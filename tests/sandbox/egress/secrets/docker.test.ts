import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, expect, test } from "vitest";
import { engineOf } from "../../../../src/sandbox/backends/docker/engine/engines.js";
import { createDockerSandbox } from "../../../../src/sandbox/backends/docker.js";
import type { Sandbox, SandboxOptions } from "../../../../src/sandbox/types.js";
import { deleteSnapshot, openSandbox, removeSandbox } from "../../../../src/sandbox.js";
import { describeUnless } from "../../../support/describe-unless.js";
import { DEBIAN, useEngine, whyNoDocker } from "../../../support/docker/engine.js";
import { type SecretServer, startSecretServer } from "../../../support/egress/secret-server.js";
import { SET_UP_LIMIT } from "../../../support/run/set-up-limit.js";
import { createScratch, type Scratch } from "../../../support/scratch.js";

const API = "api.secret.test";
const VALUE = "kept-outside-0123456789";

describeUnless(whyNoDocker(DEBIAN), "a secret in Docker", { timeout: SET_UP_LIMIT }, () => {
  let scratch: Scratch;
  let server: SecretServer;

  beforeAll(async () => {
    scratch = createScratch();
    await useEngine(DEBIAN);
    server = await startSecretServer(scratch.path, [API]);
    process.env["TEST_KEY"] = VALUE;
  }, SET_UP_LIMIT);
  afterAll(() => {
    server.close();
    scratch.remove();
    delete process.env["TEST_KEY"];
  });

  const options = (): SandboxOptions => ({
    image: DEBIAN,
    network: { allow: [`${API}:${server.port}`] },
    secrets: { TEST_KEY: { hosts: [`${API}:${server.port}`], header: "authorization" } },
  });

  /** What the server gets when git asks it, and the placeholder that git sent. */
  async function ask(sandbox: Sandbox): Promise<{ sent: string; got: unknown }> {
    const url = `https://${API}:${server.port}/repository.git`;
    const git = `git -c http.extraHeader="Authorization: Bearer $TEST_KEY" ls-remote ${url}`;
    const { stdout } = await sandbox.shell(`${git} >/dev/null 2>&1; printf %s "$TEST_KEY"`);
    return { sent: stdout, got: server.asked.at(-1)?.headers.authorization };
  }

  /** The image that was made last: its settings, and the place of what it adds to the one below. */
  async function newestImage(): Promise<{ config: string; layer: string }> {
    const images = await engineOf().call<{ Id: string; Created: number }[]>("GET", "/images/json");
    const newest = images.reduce((one, other) => (other.Created > one.Created ? other : one));
    const { Config, ContainerConfig, GraphDriver } = await engineOf().call<{
      Config: object;
      ContainerConfig: object;
      GraphDriver: { Data: { UpperDir: string } };
    }>("GET", `/images/${newest.Id}/json`);
    return { config: JSON.stringify({ Config, ContainerConfig }), layer: GraphDriver.Data.UpperDir };
  }

  function filesWith(text: string, folder: string): string[] {
    const { stdout } = spawnSync("grep", ["-rlaF", "--", text, folder], { encoding: "utf8" });
    return stdout.split("\n").filter((line) => line !== "");
  }

  test("is put in outside, and is nowhere in the container", async () => {
    await using sandbox = await createDockerSandbox(options());
    const { sent, got } = await ask(sandbox);
    expect(sent).toMatch(/^glovebox\w{32}$/);
    expect(got).toBe(`Bearer ${VALUE}`);
    const search = "grep -rslE 'kept[-]outside' /proc/[0-9]*/environ /proc/[0-9]*/cmdline /tmp /etc /root /workspace";
    expect((await sandbox.shell(search)).stdout).toBe("");
  });

  test("survives restore, forks have their own placeholder, and snapshots have nothing", async () => {
    await using sandbox = await createDockerSandbox(options());
    const first = await ask(sandbox);
    // A crash may leave an image of its memory, where the machine says so.
    const crash = "ulimit -c unlimited; python3 -c 'import os; os.abort()'; echo $? kept > status.txt";
    expect(await sandbox.shell(crash)).toMatchObject({ exitCode: 0 });
    const snapshot = await sandbox.snapshot();
    const { config, layer } = await newestImage();
    expect(config).not.toMatch(/TEST_KEY|glovebox\w{32}/);
    for (const text of [VALUE, "PRIVATE KEY-----", "Sandbox authority"]) expect(filesWith(text, layer)).toEqual([]);
    expect(filesWith("134 kept", layer)).toEqual([`${layer}/workspace/status.txt`]);
    await sandbox.restore(snapshot);
    expect(await ask(sandbox)).toEqual(first);
    await using fork = await sandbox.fork();
    const other = await ask(fork);
    expect(other.got).toBe(`Bearer ${VALUE}`);
    expect(other.sent).not.toBe(first.sent);
    await using plain = await createDockerSandbox({ snapshot });
    expect((await plain.shell("env; ls /glovebox/trust")).stdout).not.toMatch(/TEST_KEY|authority/);
    await deleteSnapshot(snapshot);
  });

  test("is added to an open sandbox, by a program that reads the system's bundle, too, and removed with it", async () => {
    const { secrets, ...without } = options();
    await using sandbox = await createDockerSandbox(without);
    await using running = await sandbox.spawn({ argv: ["sleep", "1000"] });
    // The image of the tests has none.
    const bundle = "/etc/ssl/certs/ca-certificates.crt";
    expect((await sandbox.shell(`mkdir -p /etc/ssl/certs && touch ${bundle}`)).exitCode).toBe(0);
    await sandbox.setSecrets(secrets ?? {});
    expect((await ask(sandbox)).got).toBe(`Bearer ${VALUE}`);
    const unset = "unset GIT_SSL_CAINFO SSL_CERT_FILE CURL_CA_BUNDLE";
    const before = server.asked.length;
    await sandbox.shell(`${unset}; git ls-remote https://${API}:${server.port}/repository.git`);
    expect(server.asked.length).toBeGreaterThan(before);
    expect((await sandbox.processes()).length).toBe(1);
    const snapshot = await sandbox.snapshot();
    await using plain = await createDockerSandbox({ snapshot });
    expect((await plain.shell(`grep -c . ${bundle}`)).stdout).toBe("0\n");
    await deleteSnapshot(snapshot);
    await using fork = await sandbox.fork();
    expect((await ask(fork)).got).toBe(`Bearer ${VALUE}`);
    await sandbox.setSecrets({});
    expect((await sandbox.shell("printenv TEST_KEY")).stdout).toBe("");
    await running.kill();
  });

  test("is fetched again when a kept sandbox is reopened", async () => {
    const first = await createDockerSandbox({ keep: true, ...options() });
    await first.teardown();
    process.env["TEST_KEY"] = "another-value-9876543210";
    const second = await openSandbox({ id: first.id });
    expect((await ask(second)).got).toBe("Bearer another-value-9876543210");
    await second.teardown();
    delete process.env["TEST_KEY"];
    await expect(openSandbox({ id: first.id })).rejects.toMatchObject({ code: "unauthenticated" });
    process.env["TEST_KEY"] = VALUE;
    await removeSandbox(first.id);
  });
});
