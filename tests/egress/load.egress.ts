import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createLocalSandbox } from "../../src/sandbox/backends/local.js";
import type { Sandbox } from "../../src/sandbox/types.js";
import { type SecretServer, startSecretServer } from "../support/egress/secret-server.js";
import { createScratch, type Scratch } from "../support/scratch.js";
import { PROGRAMS } from "./clients.js";

const API = "api.load.test";
const VALUE = "kept-outside-0123456789";
const GIB = 2 ** 30;
const AT_ONCE = 200;

let scratch: Scratch;
let server: SecretServer;
let sandbox: Sandbox;

beforeAll(async () => {
  scratch = createScratch();
  server = await startSecretServer(scratch.path, [API]);
  process.env["TEST_KEY"] = VALUE;
  const hosts = [`${API}:${server.port}`];
  sandbox = await createLocalSandbox({
    network: { allow: hosts },
    secrets: { TEST_KEY: { hosts, header: "x-api-key" }, TEST_BODY: { hosts, in: "body", from: { env: "TEST_KEY" } } },
    mounts: [{ source: PROGRAMS }],
  });
});

afterAll(async () => {
  await sandbox.teardown();
  server.close();
  scratch.remove();
  delete process.env["TEST_KEY"];
});

const url = (path: string): string => `https://${API}:${server.port}${path}`;

/** Runs a script, and gives what it printed and by how many bytes the memory of this process grew at most, the server's part included. */
async function watched(script: string): Promise<{ stdout: string; grown: number }> {
  const now = (): number => process.memoryUsage.rss();
  const before = now();
  let most = before;
  const watch = setInterval(() => {
    most = Math.max(most, now());
  }, 20);
  try {
    const { stdout } = await sandbox.shell(script, { check: true });
    return { stdout, grown: most - before };
  } finally {
    clearInterval(watch);
  }
}

test("1 GiB to a server, searched for a placeholder that is at its end, takes no more memory than a part of it", async () => {
  const { grown } = await watched(
    `(head -c ${GIB} /dev/zero; printf %s "$TEST_BODY") | curl -sS -T - ${url("/pieces")}`,
  );
  expect(server.asked.at(-1)?.bytes).toBe(GIB + VALUE.length);
  expect(grown).toBeLessThan(GIB / 3);
});

test("1 GiB from a server that may repeat a value takes no more memory than a part of it", async () => {
  const { stdout, grown } = await watched(
    `curl -sS -o /dev/null -w '%{http_code} %{size_download}' -H "x-api-key: $TEST_KEY" ${url(`/large=${GIB}`)}`,
  );
  expect(stdout).toBe(`200 ${GIB}`);
  expect(grown).toBeLessThan(GIB / 3);
});

test(`${AT_ONCE} connections are open at the same time`, async () => {
  const program = join(PROGRAMS, "hold-open.mjs");
  const before = server.asked.length;
  await using holder = await sandbox.spawn({ argv: ["node", program, url("/open"), String(AT_ONCE)] });
  let printed = "";
  for await (const chunk of holder.stdout) {
    printed += Buffer.from(chunk).toString();
    if (printed === "all started\n") server.goOn();
  }
  expect(printed).toMatch(/^all started\n\["data: glovebox\w{32}\\n\\ndata: end\\n\\n"\]\n$/);
  expect(server.asked.slice(before).map(({ headers }) => headers["x-api-key"])).toEqual(Array(AT_ONCE).fill(VALUE));
});
