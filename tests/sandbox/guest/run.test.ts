import { spawn } from "node:child_process";
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { guestBinary } from "../../../src/sandbox/guest/binary.js";
import { chooseStage } from "../../../src/sandbox/jail/identity.js";
import { processesWith, uniqueSeconds, until } from "../../support/guest/plain-guest.js";

let scratch: string;
beforeEach(() => {
  scratch = realpathSync(mkdtempSync(join(tmpdir(), "glovebox-run-")));
});
afterEach(() => rmSync(scratch, { recursive: true, force: true }));

interface Ended {
  code: number | null;
  signal: string | null;
  stdout: string;
  stderr: string;
}

function guest(args: readonly string[], input = "", kill?: (pid: number) => void): Promise<Ended> {
  const child = spawn(guestBinary(), args, { cwd: scratch, env: { PATH: "/usr/bin:/bin" } });
  const ended: Ended = { code: null, signal: null, stdout: "", stderr: "" };
  child.stdout.on("data", (chunk: Buffer) => {
    ended.stdout += chunk;
  });
  child.stderr.on("data", (chunk: Buffer) => {
    ended.stderr += chunk;
  });
  child.stdin.on("error", () => undefined);
  child.stdin.end(input);
  kill?.(child.pid as number);
  return new Promise((resolve) => {
    child.on("close", (code, signal) => resolve({ ...ended, code, signal }));
  });
}

const run = (options: readonly string[], ...argv: string[]): Promise<Ended> =>
  guest(["run", ...options, "--", ...argv]);

describe("run", () => {
  test("passes the exit code, the streams and the environment on", async () => {
    expect(await run([], "sh", "-c", "echo out; echo err >&2; exit 7")).toMatchObject({
      code: 7,
      stdout: "out\n",
      stderr: "err\n",
    });
    expect(await guest(["run", "--", "cat"], "through")).toMatchObject({ code: 0, stdout: "through" });
    expect(await run([], "sh", "-c", "echo $PATH; pwd")).toMatchObject({ stdout: `/usr/bin:/bin\n${scratch}\n` });
  });

  test.each([
    ["KILL", 137],
    ["TERM", 143],
    ["SEGV", 139],
  ])("a command that dies by SIG%s ends with %i", async (signal, code) => {
    expect(await run([], "sh", "-c", `kill -${signal} $$`)).toMatchObject({ code, signal: null });
  });

  test("a missing program is 127, one that cannot be run 126, each with a line", async () => {
    expect(await run([], "no-such-program")).toMatchObject({
      code: 127,
      stderr: "glovebox: no-such-program: not found\n",
    });
    expect(await run([], "/etc/hostname")).toMatchObject({
      code: 126,
      stderr: expect.stringContaining("/etc/hostname"),
    });
  });

  test("wrong usage and a missing directory are 125, and nothing is run", async () => {
    expect(await run(["--cwd", "missing"], "touch", "made")).toMatchObject({
      code: 125,
      stderr: expect.stringContaining("missing"),
    });
    expect((await run(["--what", "1"], "touch", "made")).code).toBe(125);
    expect((await guest(["run", "--"])).code).toBe(125);
    expect((await guest(["run"])).code).toBe(125);
    expect((await guest([])).code).toBe(125);
    expect(readdirSync(scratch)).toEqual([]);
  });

  test("the directory and the status file are those asked for", async () => {
    const status = join(scratch, "status");
    expect(await run(["--cwd", "/usr", "--status", status], "pwd")).toMatchObject({ code: 0, stdout: "/usr\n" });
    expect(JSON.parse(readFileSync(status, "utf8"))).toEqual({ exitCode: 0, timedOut: false });
    await run(["--status", status], "sh", "-c", "kill -9 $$");
    expect(JSON.parse(readFileSync(status, "utf8"))).toEqual({ signal: 9, timedOut: false });
    await run(["--status", status, "--timeout-ms", "100"], "sleep", "60");
    expect(JSON.parse(readFileSync(status, "utf8"))).toEqual({ signal: 9, timedOut: true });
  });

  const trees: [string, (seconds: string) => string][] = [
    ["a daemon", (s) => `(setsid sh -c 'sleep ${s} & sleep ${s} &' &) ; sleep ${s}`],
    ["a stopped supervisor", (s) => `sleep ${s} & kill -STOP $PPID; sleep ${s}`],
    ["a killed supervisor", (s) => `setsid sleep ${s} & sleep 0.1; kill -9 $PPID; sleep ${s}`],
    ["one that ignores signals", (s) => `trap '' TERM INT HUP; setsid sleep ${s} & while :; do sleep ${s}; done`],
  ];
  test.each(trees)("at the deadline %s is gone, and what was written is kept", async (_name, script) => {
    const seconds = uniqueSeconds();
    const ended = await run(["--timeout-ms", "400"], "sh", "-c", `echo begun; ${script(seconds)}`);
    expect(ended).toMatchObject({ code: 137, stdout: "begun\n" });
    expect(processesWith(seconds)).toEqual([]);
  });

  test("the grace lets a command end by itself, and no longer than that", async () => {
    const kind = await run(
      ["--timeout-ms", "300", "--grace-ms", "20000"],
      "sh",
      "-c",
      "trap 'echo bye; exit 5' TERM; while :; do sleep 0.05; done",
    );
    expect(kind).toMatchObject({ code: 5, stdout: "bye\n" });
    const seconds = uniqueSeconds();
    const stubborn = await run(
      ["--timeout-ms", "200", "--grace-ms", "200"],
      "sh",
      "-c",
      `trap '' TERM; while :; do sleep ${seconds}; done`,
    );
    expect(stubborn.code).toBe(137);
    expect(processesWith(seconds)).toEqual([]);
  });

  test("background children end with the command", async () => {
    const seconds = uniqueSeconds();
    expect((await run([], "sh", "-c", `setsid sleep ${seconds} >/dev/null 2>&1 & exit 3`)).code).toBe(3);
    expect(processesWith(seconds)).toEqual([]);
  });

  test("whoever ends the runner ends the tree", async () => {
    const seconds = uniqueSeconds();
    let pid = 0;
    const ended = guest(["run", "--", "sh", "-c", `setsid sleep ${seconds} & sleep ${seconds}`], "", (started) => {
      pid = started;
    });
    await until(() => processesWith(seconds).length >= 2);
    process.kill(pid, "SIGKILL");
    expect((await ended).signal).toBe("SIGKILL");
    await until(() => processesWith(seconds).length === 0);
  });
});

describe("launch", () => {
  test("hands on four descriptors and closes all others", async () => {
    const foreign = Array.from({ length: 5 }, () => openSync("/etc/hostname", "r"));
    try {
      const child = spawn(guestBinary(), ["launch", "--", "/bin/ls", "/proc/self/fd"], {
        stdio: ["ignore", "pipe", "inherit", "pipe", ...foreign],
      });
      let listed = "";
      child.stdout?.on("data", (chunk: Buffer) => {
        listed += chunk;
      });
      await new Promise((resolve) => child.on("close", resolve));
      // Number 4 is the directory that ls reads.
      expect(listed.trim().split("\n")).toEqual(["0", "1", "2", "3", "4"]);
    } finally {
      for (const fd of foreign) closeSync(fd);
    }
  });

  test("refuses what it does not know, and never becomes the host's root", async () => {
    expect(await guest(["launch", "--what", "--", "/bin/true"])).toMatchObject({
      code: 125,
      stderr: expect.stringContaining("--what"),
    });
    expect((await guest(["launch", "--user", "0", "0", "/tmp", "--", "/bin/true"])).code).toBe(125);
    expect(await guest(["launch", "--cgroup", join(scratch, "none"), "--", "/bin/true"])).toMatchObject({ code: 125 });
    expect((await guest(["launch", "--", "/no/such/program"])).code).toBe(125);
  });

  test("makes a root of what it is given, read-only itself, and follows no link out of it", async () => {
    const stage = chooseStage();
    const user = process.getuid?.() === 0 ? ["--user", "70001", "70001"] : [];
    const tree = join(scratch, "tree");
    mkdirSync(tree);
    // Where everybody gets to: nothing but the launcher keeps the sandbox's user from it.
    const outside = mkdtempSync("/var/tmp/glovebox-run-");
    onTestFinished(() => rmSync(outside, { recursive: true, force: true }));
    chmodSync(outside, 0o777);
    writeFileSync(join(tree, "file"), "content\n");
    symlinkSync(outside, join(tree, "out"));
    const staged = (steps: readonly string[], script: string): ReturnType<typeof guest> =>
      guest(["launch", ...user, "--build-root", stage, ...steps, "--", "/bin/sh", "-c", `cd ${stage}/root; ${script}`]);
    const steps = ["--link", "in/tree", "/linked", "--tree", "or", tree, "/in/tree", "--tmpfs", "4096", "0700", "/m"];
    expect(await staged(steps, "ls; cat linked/file; stat -c %A m; echo > m/new; echo > linked/new")).toMatchObject({
      stdout: "dev\nin\nlinked\nm\nproc\ncontent\ndrwx------\n",
      stderr: expect.stringMatching(/^[^\n]*linked\/new: Read-only file system\n$/),
    });
    expect((await staged(steps, "mkdir new")).stderr).toMatch(/Read-only file system/);
    const out = ["--tree", "ow", tree, "/in", "--tree", "or", tree, "/in/out/new"];
    expect((await staged(out, ":")).code).toBe(125);
    expect(existsSync(join(outside, "new"))).toBe(false);
    const link = join(scratch, "link");
    symlinkSync(tree, link);
    expect(await staged(["--tree", "or", link, "/in"], ":")).toMatchObject({
      code: 125,
      stderr: expect.stringContaining(`cannot attach ${link}`),
    });
  });
});

test("serve on a directory that is not there ends at once", async () => {
  expect((await guest(["serve", "--in", "0", "--out", "1", join(scratch, "missing")])).code).toBe(125);
});
