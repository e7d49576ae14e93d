import { spawn } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:os";
import type { Readable, Writable } from "node:stream";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { buildJail } from "../../../src/sandbox/backends/local/local-jail.js";
import { createLocalSandbox } from "../../../src/sandbox/backends/local.js";
import { guestBinary } from "../../../src/sandbox/guest/binary.js";
import { startJailedGuest } from "../../../src/sandbox/jail/start-guest.js";
import type { Sandbox } from "../../../src/sandbox/types.js";
import { childrenOf, descendants, stillBelow } from "../../support/processes/descendants.js";
import { processesWith } from "../../support/processes/host-processes.js";
import { readQuietly } from "../../support/processes/token-watch.js";
import { expectRefused } from "../../support/refused.js";
import { compileSources, startChild } from "../../support/run/compiled.js";
import { createScratch, type Scratch } from "../../support/scratch.js";

let compiled: { directory: string; remove(): void };
let scratch: Scratch;
let open: Sandbox[];
let before: Set<number>;
beforeAll(() => {
  compiled = compileSources({ withGuests: true });
});
afterAll(() => compiled.remove());
beforeEach(() => {
  scratch = createScratch();
  open = [];
  before = new Set(descendants(process.pid));
});
afterEach(async () => {
  await Promise.all(open.map((sandbox) => sandbox.teardown()));
  scratch.remove();
});

async function openOne(): Promise<Sandbox> {
  const sandbox = await createLocalSandbox();
  open.push(sandbox);
  return sandbox;
}

async function openSeveral(count: number): Promise<Sandbox[]> {
  const made: Sandbox[] = [];
  for (let n = 0; n < count; n++) made.push(await openOne());
  return made;
}

async function echo(sandbox: Sandbox, word: string): Promise<string> {
  return (await sandbox.exec({ argv: ["echo", word] })).stdout;
}

const isStarter = (pid: number): boolean => readQuietly(`/proc/${pid}/cmdline`).split("\0")[1] === "starter";
const startersBelow = (pid: number): number[] => descendants(pid).filter(isStarter);

test("the fifth sandbox at a time is started by another process, which ends with the last that it has started", async () => {
  await openSeveral(4);
  expect(startersBelow(process.pid)).toEqual([]);
  const fifth = await openOne();
  const [starter = 0, ...others] = startersBelow(process.pid);
  expect(others).toEqual([]);
  expect(childrenOf(starter)).toHaveLength(1);
  expect(await echo(fifth, "fifth")).toBe("fifth\n");
  const sixth = await openOne();
  expect(childrenOf(starter)).toHaveLength(2);

  await fifth.teardown();
  expect(childrenOf(starter)).toHaveLength(1);
  await sixth.teardown();
  // It is not on its way out, it has ended.
  expect(readQuietly(`/proc/${starter}/cmdline`)).toBe("");
  expect(descendants(process.pid)).not.toContain(starter);
  expect(await echo(await openOne(), "seventh")).toBe("seventh\n");
});

test("a process that cannot start any more is followed by another, and none of them stays", async () => {
  const sandboxes = await openSeveral(40);
  expect(startersBelow(process.pid)).toHaveLength(2);
  const said = await Promise.all(sandboxes.map((sandbox, n) => echo(sandbox, String(n))));
  expect(said).toEqual(sandboxes.map((_, n) => `${n}\n`));
  await Promise.all(sandboxes.map((sandbox) => sandbox.teardown()));
  expect(await stillBelow(before)).toEqual([]);
});

test("what it has started ends with it, and others go on", async () => {
  const [first] = await openSeveral(4);
  const lost = await openOne();
  const running = await lost.spawn({ argv: ["sleep", "600"] });
  const [starter = 0] = startersBelow(process.pid);
  const jail = descendants(starter);
  expect(jail.length).toBeGreaterThan(1);
  process.kill(starter, "SIGKILL");
  await expectRefused(running.wait(), "backend_lost");
  await expect.poll(() => jail.filter((pid) => readQuietly(`/proc/${pid}/cmdline`) !== "")).toEqual([]);
  await expectRefused(lost.exec({ argv: ["true"] }), "backend_lost");
  expect(await echo(first as Sandbox, "first")).toBe("first\n");
  expect(await echo(await openOne(), "next")).toBe("next\n");
  expect(startersBelow(process.pid)).not.toContain(starter);
  await Promise.all(open.map((sandbox) => sandbox.teardown()));
  expect(await stillBelow(before)).toEqual([]);
});

test("a jail that can't be made is refused with the reason that bubblewrap gives", async () => {
  await openSeveral(5);
  const [starter = 0] = startersBelow(process.pid);
  const jail = buildJail({ workDir: "/nowhere", trees: [], network: "none", cgroups: [] });
  await expectRefused(startJailedGuest(jail.spec), "no_isolation", "Can't chdir to /nowhere");
  expect(startersBelow(process.pid)).toEqual([starter]);
  expect(childrenOf(starter)).toHaveLength(1);
});

test("a manager that is killed leaves none of several sandboxes", async () => {
  const marker = `glovebox-several-${process.pid}`;
  const child = startChild(compiled.directory, "several.mjs", [JSON.stringify({ count: 7, marker })]);
  expect(JSON.parse(await child.line())).toHaveLength(7);
  // A command that has been started may not have executed its program yet.
  await expect.poll(() => new Set(processesWith(`${marker}-`).flatMap(({ argv }) => argv.slice(-1))).size).toBe(7);
  const below = descendants(child.pid);
  expect(below.filter(isStarter)).toHaveLength(1);
  child.kill();
  await child.ended;
  await expect.poll(() => processesWith(`${marker}-`)).toEqual([]);
  await expect.poll(() => below.filter((pid) => readQuietly(`/proc/${pid}/cmdline`) !== "")).toEqual([]);
  await startChild(compiled.directory, "reap.mjs", []).ended;
});

test("where there are too few descriptors for it, this process starts all of them", async () => {
  const job = JSON.stringify({ count: 6, marker: `glovebox-few-${process.pid}` });
  const program = new URL("../../children/several.mjs", import.meta.url).pathname;
  const script = 'ulimit -n 70; exec "$@"';
  const child = spawn("sh", ["-c", script, "sh", process.execPath, program, compiled.directory, job], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const [line] = (await once(child.stdout as Readable, "data")) as [Buffer];
  expect(JSON.parse(line.toString())).toHaveLength(6);
  expect(startersBelow(child.pid ?? 0)).toEqual([]);
  child.stdin?.write("close\n");
  expect(await once(child, "exit")).toEqual([0, null]);
});

test("says why a process could not be started, and ends when an order makes no sense", async () => {
  const child = spawn("sh", ["-c", 'ulimit -n 6; exec "$0" starter 1', guestBinary()], {
    stdio: ["pipe", "pipe", "inherit", "pipe"],
  });
  const [requests, events] = child.stdio as unknown as [Writable, Readable];
  const words = Buffer.from("/bin/true\0");
  const header = Buffer.from([words.length, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]);
  requests.write(Buffer.concat([header, words]));
  const [answer] = (await once(events, "data")) as [Buffer];
  expect([answer[4], answer.readInt32LE(8)]).toEqual([2, constants.errno.EMFILE]);
  header[5] = 1;
  requests.write(header);
  expect(await once(child, "exit")).toEqual([0, null]);
});
