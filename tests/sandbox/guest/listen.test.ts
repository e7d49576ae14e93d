import { spawnSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { DriverConnection } from "../../../contracts/driver.js";
import { buildJail } from "../../../src/sandbox/backends/local/local-jail.js";
import { guestBinary } from "../../../src/sandbox/guest/binary.js";
import { startCommand } from "../../../src/sandbox/guest/guest-process.js";
import { freeze, listenInside, thaw } from "../../../src/sandbox/guest/listener.js";
import { listenAt, stopListeningAt } from "../../../src/sandbox/guest/names.js";
import { openLowPorts } from "../../../src/sandbox/jail/low-ports.js";
import { type RunningGuest, startJailedGuest, startPlainGuest } from "../../../src/sandbox/jail/start-guest.js";
import { createScratch, type Scratch } from "../../support/scratch.js";

let scratch: Scratch;
let guest: RunningGuest;
let env: Record<string, string>;

beforeEach(async () => {
  scratch = createScratch();
  const tree = { source: scratch.path, target: scratch.path, writable: true, owned: true };
  const walls = buildJail({
    workDir: scratch.path,
    trees: [tree],
    network: "none",
    cgroups: [],
  });
  env = walls.baseEnv;
  guest = await startJailedGuest(walls.spec);
});
afterEach(async () => {
  await guest.stop();
  scratch.remove();
});

async function run(...argv: string[]): Promise<string> {
  const process = await startCommand(guest.channel, { argv, cwd: scratch.path, env, stdin: "none" }, "");
  let output = "";
  for await (const chunk of process.stdout) output += Buffer.from(chunk).toString();
  for await (const chunk of process.stderr) output += Buffer.from(chunk).toString();
  await process.wait();
  return output;
}

const ECHO = `
const socket = require("node:net").connect({ port: 3128, host: "127.0.0.1", allowHalfOpen: true });
let length = 0;
socket.on("data", (chunk) => { length += chunk.length; });
socket.on("end", () => console.log("ended", length));
socket.end(Buffer.alloc(3_000_000, 97));
`;

test("who connects inside talks to the host, in both directions, each with its own end", async () => {
  await listenInside(guest.channel, 3128, (connection) => {
    void (async () => {
      for await (const chunk of connection.input) await connection.write(chunk);
      await connection.end();
    })();
  });
  const told = await Promise.all([run("node", "-e", ECHO), run("node", "-e", ECHO), run("node", "-e", ECHO)]);
  expect(told).toEqual(["ended 3000000\n", "ended 3000000\n", "ended 3000000\n"]);
});

test("the host can turn a connection away", async () => {
  await listenInside(guest.channel, 3128, (connection) => connection.destroy());
  const script = `require("node:net").connect(3128, "127.0.0.1").on("close", () => console.log("closed")).on("error", () => {}).write("x")`;
  expect(await run("node", "-e", script)).toBe("closed\n");
});

test("a port that is taken inside is refused", async () => {
  await listenInside(guest.channel, 3128, (connection) => connection.destroy());
  await expect(listenInside(guest.channel, 3129, () => undefined)).rejects.toMatchObject({ name: "SandboxError" });
});

const HELLO = (address: string): string =>
  `require("node:net").connect(4000, "${address}").on("data", (d) => console.log(String(d))).on("error", (e) => console.log(e.code))`;

test("listeners at several addresses are told apart, and stop one by one", async () => {
  const [one, two] = [0x7f4d0001, 0x7f4d0002].map((address) => ({ address, port: 4000 }));
  if (one === undefined || two === undefined) throw new Error("there are two");
  const greet = (text: string) => (connection: DriverConnection) =>
    void connection.write(Buffer.from(text)).then(() => connection.end());
  await listenAt(guest.channel, one, greet("one"));
  await listenAt(guest.channel, two, greet("two"));
  await listenInside(guest.channel, 4000, greet("usual"));
  await expect(listenAt(guest.channel, one, greet("again"))).rejects.toMatchObject({ name: "SandboxError" });
  await listenAt(guest.channel, { address: 0x7f4d0001, port: 4001 }, greet("other"));
  expect(await run("node", "-e", HELLO("127.77.0.2"))).toBe("two\n");
  expect(await run("node", "-e", HELLO("127.0.0.1"))).toBe("usual\n");
  await stopListeningAt(guest.channel, two);
  expect(await run("node", "-e", HELLO("127.77.0.2"))).toBe("ECONNREFUSED\n");
  await expect(stopListeningAt(guest.channel, two)).rejects.toMatchObject({ name: "SandboxError" });
  await expect(stopListeningAt(guest.channel, { address: 0x7f000001, port: 4000 })).rejects.toThrow();
  expect(await run("node", "-e", HELLO("127.0.0.1"))).toBe("usual\n");
  await listenAt(guest.channel, two, greet("back"));
  expect(await run("node", "-e", HELLO("127.77.0.2"))).toBe("back\n");
});

test("there are 64 listeners at most", async () => {
  const ask = (port: number): Promise<void> =>
    listenAt(guest.channel, { address: 0x7f4d0001, port: 5000 + port }, () => undefined);
  for (let port = 0; port < 64; port++) await ask(port);
  await expect(ask(64)).rejects.toMatchObject({ name: "SandboxError" });
  await stopListeningAt(guest.channel, { address: 0x7f4d0001, port: 5000 });
  await ask(64);
});

test("a low port is free for everybody in the jail once that was asked for, and the machine's own setting stays", async () => {
  const setting = (): string => readFileSync("/proc/sys/net/ipv4/ip_unprivileged_port_start", "utf8");
  const before = setting();
  const script = `require("node:net").createServer().listen(81, "127.0.0.1", function () { console.log("up"); this.close(); }).on("error", (e) => console.log(e.code))`;
  const isFree = Number(await run("cat", "/proc/sys/net/ipv4/ip_unprivileged_port_start")) <= 81;
  expect(await run("node", "-e", script)).toBe(isFree ? "up\n" : "EACCES\n");
  await openLowPorts(guest.pid);
  expect(await run("node", "-e", script)).toBe("up\n");
  expect(setting()).toBe(before);
});

test("the setting of a network that the caller is in itself is not changed", () => {
  // In a network of the test's own, where its user may change everything.
  const script = `sh -c 'sleep 60 & wait' & parent=$!
    until [ -n "$(cat /proc/$parent/task/$parent/children)" ]; do sleep 0.01; done
    "$0" open-low-ports $parent; echo $?; cat /proc/sys/net/ipv4/ip_unprivileged_port_start
    kill $(cat /proc/$parent/task/$parent/children)`;
  const jail = ["--unshare-user", "--unshare-pid", "--unshare-net", "--cap-add", "ALL", "--uid", "0", "--gid", "0"];
  const files = ["--dev-bind", "/", "/", "--proc", "/proc"];
  const { stdout, stderr } = spawnSync("bwrap", [...jail, ...files, "sh", "-c", script, guestBinary()], {
    encoding: "utf8",
  });
  expect(stdout).toBe("125\n1024\n");
  expect(stderr).toMatch(/the network is not the jail's own/);
});

test("frozen, nothing runs; thawed, everything goes on", async () => {
  const script = "(while :; do echo x >> beat; sleep 0.01; done) & while :; do :; done";
  const argv = ["sh", "-c", script];
  const process = await startCommand(guest.channel, { argv, cwd: scratch.path, env, stdin: "none" }, "");
  const size = (): number => statSync(join(scratch.path, "beat"), { throwIfNoEntry: false })?.size ?? 0;
  const grows = async (): Promise<boolean> => {
    const before = size();
    for (let i = 0; i < 3000 && size() === before; i++) await delay(10);
    return size() > before;
  };
  expect(await grows()).toBe(true);
  await freeze(guest.channel);
  const still = size();
  await delay(500);
  expect(size()).toBe(still);
  await thaw(guest.channel);
  expect(await grows()).toBe(true);
  await freeze(guest.channel);
  await process.kill("SIGKILL");
  expect(await process.wait()).toMatchObject({ exitCode: 137, signal: "SIGKILL" });
});

test("a process that waits for a stopped child of vfork is no reason to fail", async () => {
  // Each shell is in vfork() for a good part of its time.
  const script = "for i in 1 2 3 4; do (while :; do /bin/true; done) & done; wait";
  const process = await startCommand(
    guest.channel,
    { argv: ["sh", "-c", script], cwd: scratch.path, env, stdin: "none" },
    "",
  );
  for (let i = 0; i < 100; i++) {
    await freeze(guest.channel);
    await thaw(guest.channel);
  }
  await process.kill("SIGKILL");
  expect(await process.wait()).toMatchObject({ exitCode: 137 });
});

test("without namespaces nothing is frozen, as that would be the user's own processes", async () => {
  const plain = await startPlainGuest(scratch.path, []);
  try {
    await expect(freeze(plain.channel)).rejects.toMatchObject({ name: "SandboxError" });
    await expect(thaw(plain.channel)).rejects.toMatchObject({ name: "SandboxError" });
  } finally {
    await plain.stop();
  }
});
