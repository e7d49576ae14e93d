import { closeSync, openSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  openPlainGuest,
  type PlainGuest,
  processesWith,
  text,
  uniqueSeconds,
  until,
} from "../../support/guest/plain-guest.js";
import { descendants } from "../../support/processes/descendants.js";
import { readQuietly } from "../../support/processes/token-watch.js";

let plain: PlainGuest;
beforeEach(async () => {
  plain = await openPlainGuest();
});
afterEach(() => plain.stop());

describe("descriptors", () => {
  test("a command has its three streams and nothing of the manager's or the guest's", async () => {
    const foreign = Array.from({ length: 40 }, () => openSync("/etc/hostname", "r"));
    const other = await openPlainGuest();
    try {
      const blocked = await other.start(["cat"], { stdin: "pipe" });
      // The fourth is the directory that ls itself reads.
      for (const guest of [other, plain]) {
        expect((await guest.run(["ls", "/proc/self/fd"])).stdout.trim().split("\n")).toEqual(["0", "1", "2", "3"]);
        const { stdout } = await guest.run(["readlink", "/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2"]);
        expect(stdout).toMatch(/^\/dev\/null\npipe:\[\d+\]\npipe:\[\d+\]\n$/);
      }
      await blocked.kill("SIGKILL");
      await blocked.wait();
    } finally {
      for (const fd of foreign) closeSync(fd);
      await other.stop();
    }
  });

  test("signals are at their defaults: a pipe without a reader ends the writer", async () => {
    expect(await plain.shell("grep -E 'Sig(Blk|Ign)' /proc/self/status")).toMatchObject({
      stdout: "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n",
    });
  });

  test("long file work does not keep another command's stdin open", async () => {
    const cat = await plain.start(["cat"], { stdin: "pipe" });
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    async function* slowArchive(): AsyncGenerator<Uint8Array> {
      yield new Uint8Array(100);
      await held;
    }
    const unpacking = plain.files.importTree(slowArchive(), "");
    const refused = expect(unpacking).rejects.toMatchObject({ code: "invalid_argument" });
    // The work is under way, and has been started after `cat`.
    await until(() => childrenOf(plain.pid).length === 2);
    await cat.writeStdin(Buffer.from("whole"));
    await cat.closeStdin();
    expect(await text(cat.stdout)).toBe("whole");
    expect(await cat.wait()).toEqual({ exitCode: 0 });
    release();
    await refused;
  });

  test("failed and finished calls leave the guest as it was", async () => {
    const before = descriptorsOf(plain.pid);
    for (let round = 0; round < 20; round++) {
      await plain.run(["missing-program"]);
      await plain.run(["true"], { pty: { cols: 80, rows: 24 } });
      await expect(plain.files.read("missing/file")).resolves.toBeNull();
      await expect(plain.files.write("../outside", Buffer.from("x"), 0o644)).rejects.toMatchObject({
        code: "path_confinement",
      });
      await expect(plain.files.list("missing")).rejects.toMatchObject({ code: "not_found" });
      await plain.files.write("sub/file", Buffer.alloc(2 << 20), 0o644);
      expect(await plain.files.listDetails("sub")).toMatchObject([{ name: "file", size: 2 << 20 }]);
      await plain.files.copy("sub", "copy/sub", true);
      await expect(plain.files.copy("sub", "copy/sub", true)).rejects.toMatchObject({ code: "conflict" });
      await plain.files.append("sub/file", Buffer.alloc(2 << 20), 0o644);
      await (await plain.files.readStream("sub/file", { start: 1 }))?.[Symbol.asyncIterator]().return?.();
      expect(await plain.files.remove("copy", true)).toBe(true);
      expect(await plain.files.remove("sub", true)).toBe(true);
    }
    expect(descriptorsOf(plain.pid)).toBe(before);
    expect(childrenOf(plain.pid)).toEqual([]);
  });
});

describe("many calls", () => {
  test("the 769th is unavailable, the others go on, and then there is room again", async () => {
    const calls = Array.from({ length: 768 }, () => plain.start(["cat"], { stdin: "pipe" }));
    const processes = await Promise.all(calls);
    await expect(plain.start(["true"])).rejects.toMatchObject({ code: "unavailable" });
    await expect(plain.files.write("big", Buffer.alloc(2 << 20), 0o644)).rejects.toMatchObject({ code: "unavailable" });
    const [first] = processes;
    await first?.writeStdin(Buffer.from("still here"));
    for (const process of processes) await process.closeStdin();
    expect(first && (await text(first.stdout))).toBe("still here");
    const exits = await Promise.all(processes.map((process) => process.wait()));
    expect(exits.every(({ exitCode }) => exitCode === 0)).toBe(true);
    expect(await plain.run(["echo", "again"])).toMatchObject({ exitCode: 0, stdout: "again\n" });
  });

  test("to kill one disturbs no other", async () => {
    const [one, two] = await Promise.all([
      plain.start(["sleep", uniqueSeconds()]),
      plain.start(["cat"], { stdin: "pipe" }),
    ]);
    await one.kill("SIGKILL");
    expect(await one.wait()).toEqual({ exitCode: 137, signal: "SIGKILL" });
    await two.writeStdin(Buffer.from("alive"));
    await two.closeStdin();
    expect(await text(two.stdout)).toBe("alive");
    expect(await two.wait()).toEqual({ exitCode: 0 });
  });

  test("a pipe that another call's process holds does not hold up the end", async () => {
    const holder = await plain.start([
      "sh",
      "-c",
      "while [ ! -e go ]; do sleep 0.01; done; exec 9>/proc/$(cat go)/fd/1; echo held; sleep 60",
    ]);
    const out = holder.stdout[Symbol.asyncIterator]();
    const giver = await plain.start([
      "sh",
      "-c",
      "echo $$ > tmp; mv tmp go; echo mine; while :; do sleep 0.01; [ -e end ] && exit 3; done",
    ]);
    expect(Buffer.from((await out.next()).value ?? "").toString()).toBe("held\n");
    await plain.files.write("end", Buffer.from(""), 0o644);
    expect(await giver.wait()).toEqual({ exitCode: 3 });
    expect(await text(giver.stdout)).toBe("mine\n");
    await holder.kill("SIGKILL");
    await holder.wait();
  });
});

describe("the end of a tree", () => {
  const workloads: [string, (seconds: string) => string][] = [
    ["a child in the group", (s) => `sleep ${s} & sleep ${s}`],
    ["a session of its own", (s) => `setsid sleep ${s} & sleep ${s}`],
    ["a double fork", (s) => `(setsid sh -c 'sleep ${s} & sleep ${s} &' &) ; sleep ${s}`],
    ["one that ignores signals", (s) => `trap '' TERM HUP INT; (trap '' TERM HUP INT; sleep ${s}) & sleep ${s}`],
    ["an empty environment", (s) => `env -i /usr/bin/setsid /bin/sleep ${s} & sleep ${s}`],
    ["a stopped child", (s) => `sleep ${s} & kill -STOP $!; sleep ${s}`],
    ["a stopped supervisor", (s) => `sleep ${s} & kill -STOP $PPID; sleep ${s}`],
    [
      "a killed supervisor",
      (s) => `setsid sleep ${s} & (sleep ${s} &); sleep ${s} & sleep 0.05; kill -9 $PPID; sleep ${s}`,
    ],
    [
      "a chain",
      (s) => `sh -c 'sh -c "sh -c \\"setsid sleep ${s} & sleep ${s}\\" & sleep ${s}" & sleep ${s}' & sleep ${s}`,
    ],
  ];

  test.each(workloads)("kill takes %s", async (_name, script) => {
    const seconds = uniqueSeconds();
    const process = await plain.start(["sh", "-c", script(seconds)]);
    let isOver = false;
    // On a busy machine the one that kills its supervisor is over before it is seen.
    const ended = process.wait().finally(() => {
      isOver = true;
    });
    await until(() => isOver || processesWith(seconds).length > 0);
    await process.kill("SIGKILL");
    expect((await ended).exitCode).toBe(137);
    expect(processesWith(seconds)).toEqual([]);
    expect(childrenOf(plain.pid)).toEqual([]);
  });

  test.each(workloads)("the guest's own deadline takes %s", async (_name, script) => {
    const seconds = uniqueSeconds();
    const process = await plain.start(["sh", "-c", `echo started; ${script(seconds)}`], { timeout: 1_500 });
    expect(await text(process.stdout)).toBe("started\n");
    expect((await process.wait()).exitCode).toBe(137);
    expect(processesWith(seconds)).toEqual([]);
  });

  test.each(workloads)("the end of the channel takes %s", async (name, script) => {
    const seconds = uniqueSeconds();
    const process = await plain.start(["sh", "-c", script(seconds)]);
    let end: unknown;
    // On a busy machine the one that kills its supervisor is over before the channel is.
    const ended = process.wait().then(
      ({ exitCode }) => {
        end = exitCode;
      },
      ({ code }: { code: string }) => {
        end = code;
      },
    );
    await until(() => processesWith(seconds).length > 0 || end !== undefined);
    await plain.guest.stop();
    await ended;
    expect(name === "a killed supervisor" ? ["closed", 137] : ["closed"]).toContain(end);
    expect(processesWith(seconds)).toEqual([]);
  });

  test("a supervisor that is killed from inside ends the call, and nothing is left", async () => {
    const seconds = uniqueSeconds();
    const { exitCode, stdout } = await plain.shell(
      `echo begun; setsid sleep ${seconds} & kill -9 $PPID; sleep ${seconds}`,
    );
    expect({ exitCode, stdout }).toEqual({ exitCode: 137, stdout: "begun\n" });
    expect(processesWith(seconds)).toEqual([]);
    expect((await plain.run(["true"])).exitCode).toBe(0);
  });

  test("the deadline holds while the manager is busy", async () => {
    const seconds = uniqueSeconds();
    await plain.start(["sleep", seconds], { timeout: 2_000 });
    // Nothing of ours runs meanwhile: no timer, no channel.
    const waitFor = (count: number): number => {
      const end = performance.now() + 30_000;
      let seen = processesWith(seconds).length;
      while (seen !== count && performance.now() < end) seen = processesWith(seconds).length;
      return seen;
    };
    expect(waitFor(1)).toBe(1);
    expect(waitFor(0)).toBe(0);
  });
});

test("output that nobody reads stops the command, and the guest stays small", async () => {
  const flood = await plain.start(["sh", "-c", "head -c 52428800 /dev/zero; echo done > done"]);
  const other = await plain.run(["head", "-c", "3000000", "/dev/zero"]);
  expect(other.stdout).toHaveLength(3_000_000);
  const pages = Number(readFileSync(`/proc/${plain.pid}/statm`, "utf8").split(" ")[1]);
  expect(pages * 4096).toBeLessThan(8 << 20);
  expect(readdirSync(plain.root)).toEqual([]);
  let length = 0;
  for await (const chunk of flood.stdout) length += chunk.length;
  expect(length).toBe(52_428_800);
  expect(await flood.wait()).toEqual({ exitCode: 0 });
  expect(readdirSync(plain.root)).toEqual(["done"]);
});

test("what a busy channel takes is given back once it is idle, also by the supervisors that were started meanwhile", async () => {
  const runs = Array.from({ length: 8 }, () => plain.run(["head", "-c", "5000000", "/dev/zero"]));
  for (const { stdout } of await Promise.all(runs)) expect(stdout).toHaveLength(5_000_000);
  const own = (): number[] => [plain.pid, ...descendants(plain.pid)].map(anonymousKiB);
  await expect.poll(() => Math.max(...own()), { timeout: 30_000 }).toBeLessThan(200);
});

/** Memory of a process that no file backs, shared with its parent or not. */
function anonymousKiB(pid: number): number {
  return Number(/^Anonymous:\s+(\d+)/m.exec(readQuietly(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0);
}

describe("paths as deep as they can be", () => {
  test("two thousand parts are made, exported and removed", async () => {
    const path = Array.from({ length: 2000 }, () => "p").join("/");
    await plain.files.makeDirectory(path);
    expect(await plain.files.stat(path)).toMatchObject({ type: "directory" });
    await plain.files.write(`${path}/end`, Buffer.from("deep"), 0o644);
    let bytes = 0;
    for await (const chunk of plain.files.exportTree("")) bytes += chunk.length;
    expect(bytes).toBeGreaterThan(2000 * 512);
    expect(await plain.files.remove("p", true)).toBe(true);
    expect(readdirSync(plain.root)).toEqual([]);
  });

  test("a tree deeper than any path is removed", async () => {
    const dig =
      "import os\nfor i in range(30000):\n os.mkdir('q'); os.chdir('q')\nopen('f','w').close(); os.chmod('.', 0)";
    const dug = await plain.run(["python3", "-c", dig]);
    expect(dug).toMatchObject({ exitCode: 0 });
    expect(await plain.files.remove("q", true)).toBe(true);
    expect(readdirSync(plain.root)).toEqual([]);
  });
});

function childrenOf(pid: number): number[] {
  const list = readFileSync(join("/proc", String(pid), "task", String(pid), "children"), "utf8").trim();
  return list === "" ? [] : list.split(" ").map(Number);
}

function descriptorsOf(pid: number): number {
  return readdirSync(join("/proc", String(pid), "fd")).length;
}
