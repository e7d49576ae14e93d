import { execFileSync } from "node:child_process";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createLocalSandbox } from "../../../../src/sandbox/backends/local.js";
import type { Sandbox } from "../../../../src/sandbox/types.js";
import { type SecretServer, startSecretServer } from "../../../support/egress/secret-server.js";
import { descendants } from "../../../support/processes/descendants.js";
import { createScratch, type Scratch } from "../../../support/scratch.js";

const API = "api.secret.test";
const VALUE = "kept-outside-0123456789";

let scratch: Scratch;
let server: SecretServer;
let sandbox: Sandbox;

beforeAll(async () => {
  scratch = createScratch();
  server = await startSecretServer(scratch.path, [API]);
  process.env["TEST_KEY"] = VALUE;
  const hosts = [`${API}:${server.port}`];
  sandbox = await createLocalSandbox({ network: { allow: hosts }, secrets: { TEST_KEY: { hosts } } });
  // What is started from here on must not get it from us.
  delete process.env["TEST_KEY"];
});

afterAll(async () => {
  await sandbox.teardown();
  server.close();
  scratch.remove();
});

/** Uses the secret, keeps the answer in its memory, and stays. */
const USE = `
  const kept = [], key = process.env.TEST_KEY;
  fetch(process.argv[1], { method: "POST", headers: { "x-api-key": key }, body: key }).then((r) => r.text()).then((text) => {
    kept.push(text);
    console.log(text.length);
    setInterval(() => kept.length, 1000);
  });`;

/** Searches the memory of processes, all that it may read, for texts. Each is given in two parts, so that the search does not find itself. */
const SEARCH = `
  const fs = require("fs"), [pids, ...texts] = process.argv.slice(1);
  const wanted = texts.map((text) => text.split("|").map((part) => Buffer.from(part)));
  const found = wanted.map(() => 0), result = { found, bytes: 0, processes: 0 };
  const has = (piece, [first, second]) => {
    for (let at = piece.indexOf(first); at !== -1; at = piece.indexOf(first, at + 1)) {
      if (piece.subarray(at + first.length, at + first.length + second.length).equals(second)) return true;
    }
    return false;
  };
  for (const pid of pids === "all" ? fs.readdirSync("/proc").filter((name) => /^[0-9]+$/.test(name)) : pids.split(",")) {
    let maps, file;
    try {
      maps = fs.readFileSync("/proc/" + pid + "/maps", "latin1");
      file = fs.openSync("/proc/" + pid + "/mem");
    } catch {
      continue;
    }
    result.processes++;
    for (const [, from, to] of maps.matchAll(/^([0-9a-f]+)-([0-9a-f]+) r/gm)) {
      const start = parseInt(from, 16), piece = Buffer.alloc(Math.min(parseInt(to, 16) - start, 64 << 20));
      try {
        result.bytes += fs.readSync(file, piece, 0, piece.length, start);
      } catch {
        continue; // what the kernel alone has there
      }
      wanted.forEach((parts, at) => { if (has(piece, parts)) found[at]++; });
    }
    fs.closeSync(file);
  }
  console.log(JSON.stringify(result));`;

interface Searched {
  /** In how many places each text was. */
  found: [value: number, placeholder: number];
  bytes: number;
  processes: number;
}

const inParts = (text: string): string => `${text.slice(0, 12)}|${text.slice(12)}`;

async function placeholder(): Promise<string> {
  return (await sandbox.shell('printf %s "$TEST_KEY"')).stdout;
}

test("no process of the sandbox has the value in its memory, where the placeholder is", async ({ skip }) => {
  if (process.getuid?.() !== 0) skip("only root can read the memory of the processes of a sandbox");
  await using user = await sandbox.spawn({ argv: ["node", "-e", USE, `https://${API}:${server.port}/`] });
  const { value } = await user.stdout.getReader().read();
  expect(Number(String(Buffer.from(value ?? [])))).toBeGreaterThan(100);
  expect(server.asked.at(-1)?.headers["x-api-key"]).toBe(VALUE);
  const pids = descendants(process.pid).join(",");
  const texts = [VALUE, await placeholder()].map(inParts);
  const printed = execFileSync(process.execPath, ["-e", SEARCH, pids, ...texts], { encoding: "utf8" });
  const { found, processes } = JSON.parse(printed) as Searched;
  expect({ value: found[0], hasPlaceholder: found[1] > 0 }).toEqual({ value: 0, hasPlaceholder: true });
  expect(processes).toBeGreaterThan(2);
  await user.kill();
});

test("a program inside that reads all memory it can finds the placeholder, and no value", async () => {
  const argv = ["node", "-e", SEARCH, "all", ...["kept-outside-0123", await placeholder()].map(inParts)];
  const { stdout, stderr } = await sandbox.exec({ argv });
  expect(stderr).toBe("");
  const { found, bytes } = JSON.parse(stdout) as Searched;
  expect({ value: found[0], hasPlaceholder: found[1] > 0 }).toEqual({ value: 0, hasPlaceholder: true });
  expect(bytes).toBeGreaterThan(1 << 20);
});

test("a program inside that crashes leaves no image of its memory", async () => {
  const script = "ulimit -c unlimited 2>/dev/null; ulimit -c; sh -c 'kill -SEGV $$'; echo $?; ls -A";
  const { stdout } = await sandbox.shell(script);
  expect(stdout).toMatch(/^[01]\n139\n$/);
});
