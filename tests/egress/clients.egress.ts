import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createLocalSandbox } from "../../src/sandbox/backends/local.js";
import type { Sandbox } from "../../src/sandbox/types.js";
import { type SecretServer, startSecretServer } from "../support/egress/secret-server.js";
import { RUNTIMES } from "../support/run/runtimes.js";
import { createScratch, type Scratch } from "../support/scratch.js";
import { clientsIn, compileClients, PROGRAMS, RUST } from "./clients.js";

const API = "api.clients.test";
const VALUE = "kept-outside-0123456789";
const SIZES = [200_000, 100_000_000];

let scratch: Scratch;
let server: SecretServer;
let sandbox: Sandbox;
const compiled = (): string => join(scratch.path, "compiled");
const clients = clientsIn(compiled);

beforeAll(async () => {
  scratch = createScratch();
  mkdirSync(compiled());
  compileClients(compiled());
  server = await startSecretServer(scratch.path, [API]);
  process.env["TEST_KEY"] = VALUE;
  const hosts = [`${API}:${server.port}`];
  const programs = RUNTIMES.filter(({ program }) => existsSync(program)).map(({ program }) => dirname(program));
  sandbox = await createLocalSandbox({
    network: { allow: hosts },
    secrets: { TEST_KEY: { hosts, header: "x-api-key" } },
    mounts: [PROGRAMS, compiled(), ...programs, ...[RUST].filter(existsSync)].map((source) => ({ source })),
  });
  await sandbox.shell(`for size in ${SIZES.join(" ")}; do truncate -s $size zeros-$size; done`, { check: true });
});

afterAll(async () => {
  await sandbox.teardown();
  server.close();
  scratch.remove();
  delete process.env["TEST_KEY"];
});

const url = (): string => `https://${API}:${server.port}/pieces`;

/** Runs a client, and expects the server to get the value and the client the placeholder. */
async function expectAnswer(argv: string[], { env = {}, bytes = 0 }: { env?: Record<string, string>; bytes?: number }) {
  const before = server.asked.length;
  const { stdout, stderr, exitCode } = await sandbox.exec({ argv, env });
  expect({ stdout, stderr, exitCode }).toMatchObject({
    stdout: expect.stringMatching(/^you sent glovebox\w{32}\.$/),
    exitCode: 0,
  });
  const asked = server.asked.slice(before);
  expect(asked).toMatchObject([{ method: bytes > 0 ? "POST" : "GET", bytes, headers: { "x-api-key": VALUE } }]);
}

describe.for(Object.entries(clients))("%s", ([, client]) => {
  test.for([0, ...(client.posts ? SIZES : [])])(
    "sends the value that it doesn't have, and %i bytes",
    async (bytes, { skip }) => {
      const why = client.why();
      if (why !== undefined) skip(why);
      await expectAnswer(client.argv(url(), bytes), { bytes });
    },
  );
});

describe("a clock that is off by a day and a half", () => {
  const library = readdirSync("/usr/lib", { withFileTypes: true })
    .map(({ name }) => join("/usr/lib", name, "faketime", "libfaketime.so.1"))
    .find((path) => existsSync(path));
  const clock = (offset: string): Record<string, string> => ({
    LD_PRELOAD: library ?? "",
    FAKETIME: offset,
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
  });
  const missing = library === undefined ? "this machine has no libfaketime" : undefined;
  const cases = Object.entries(clients).filter(([, { hasClock }]) => hasClock);

  test.for(cases.flatMap(([name]) => ["-36h", "+36h"].map((offset) => [name, offset] as const)))(
    "%s sends the value at %s",
    async ([name, offset], { skip }) => {
      const why = missing ?? clients[name]?.why();
      if (why !== undefined) skip(why);
      await expectAnswer(clients[name]?.argv(url(), 0) ?? [], { env: clock(offset) });
    },
  );

  test("matters: a program whose clock is off by five days accepts no certificate", async ({ skip }) => {
    if (missing !== undefined) skip(missing);
    const { stderr } = await sandbox.exec({ argv: clients["curl"]?.argv(url(), 0) ?? [], env: clock("-5d") });
    expect(stderr).toContain("certificate is not yet valid");
  });
});
