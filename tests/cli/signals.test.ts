import { execFile, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { listSandboxes } from "../../src/sandbox.js";
import { type Bench, createBench, program } from "../support/cli.js";
import { createRepository, createScratch, git, type Scratch } from "../support/scratch.js";

let scratch: Scratch;
let bench: Bench;
beforeEach(() => {
  scratch = createScratch();
  bench = createBench(scratch);
});
afterEach(() => scratch.remove());

/** Tells of the signal that it gets; `$1` is there so that a process left over is found by its command line. */
const POLITE =
  'for s in INT TERM HUP; do trap "echo got $s; exit 9" $s; done; echo ready; while :; do sleep 0.05; done';
const STUBBORN = 'trap "" INT TERM HUP PIPE; setsid sleep 600 & echo ready; while :; do sleep 0.05; done';

function call(script: string): string[] {
  return ["exec", "--", "sh", "-c", script, "sh", bench.path];
}

describe("[F-20] a signal", () => {
  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const)("%s goes to the command, then everything is taken down: exit %i", async (signal, code) => {
    const run = bench.start(call(POLITE));
    await run.printed("ready\n");
    run.child.kill(signal);
    expect(await run.ended).toMatchObject({ code, stdout: `ready\ngot ${signal.slice(3)}\n` });
    expect(bench.leftovers()).toEqual([]);
    expect((await bench.run(["ls", "--json"])).stdout).toBe("[]\n");
  });

  it("that the command ignores ends it all the same, with what it started", async () => {
    const run = bench.start(call(STUBBORN));
    await run.printed("ready\n");
    run.child.kill("SIGINT");
    expect(await run.ended).toMatchObject({ code: 130 });
    expect(bench.leftovers()).toEqual([]);
  });

  it("ends a verb on a kept sandbox, which stays, and what was begun is taken back", async () => {
    const line = ["exec", "--json", "--keep", "--repo", createRepository(join(bench.path, "repo")), "--", "true"];
    const { id } = (JSON.parse((await bench.run(line)).stdout) as { sandbox: { id: string } }).sandbox;
    const run = bench.start(["fork", id, "--count", "64"]);
    const ids = async (): Promise<string[]> => (await bench.run(["ls", "-q"])).stdout.split("\n").filter(Boolean);
    await expect.poll(async () => (await listSandboxes()).length, { interval: 20 }).toBeGreaterThanOrEqual(2);
    run.child.kill("SIGINT");
    expect(await run.ended).toMatchObject({ code: 130, stdout: "", stderr: "" });
    expect(await ids()).toEqual([id]);
    expect((await bench.run(["exec", "--id", id, "--", "cat", "a.txt"])).stdout).toBe("one more\n");
    await bench.run(["rm", id]);
    expect(git(join(bench.path, "repo"), "for-each-ref", "--format=%(refname)", "refs/glovebox")).toBe("");
  });

  it("a second one ends it at once: no process is left, and the next start takes the folder away", async () => {
    const run = bench.start(call(STUBBORN));
    await run.printed("ready\n");
    run.child.kill("SIGINT");
    const twice = setInterval(() => run.child.kill("SIGINT"), 20);
    expect(await run.ended.finally(() => clearInterval(twice))).toMatchObject({ code: 130 });
    expect((await bench.run(["reap"])).code).toBe(0);
    expect(await bench.settled()).toEqual([]);
  });

  it("that a program sends twice at once is one request: everything is taken down", async () => {
    const run = bench.start(call(STUBBORN));
    await run.printed("ready\n");
    run.child.kill("SIGTERM");
    run.child.kill("SIGHUP");
    // The kernel delivers what has come together in an order of its own.
    expect([129, 143]).toContain((await run.ended).code);
    expect(bench.leftovers()).toEqual([]);
  });

  it("SIGKILL leaves no process either", async () => {
    const run = bench.start(call(STUBBORN));
    await run.printed("ready\n");
    run.child.kill("SIGKILL");
    expect(await run.ended).toMatchObject({ signal: "SIGKILL" });
    expect((await bench.run(["reap", "--json"])).code).toBe(0);
    expect(await bench.settled()).toEqual([]);
  });

  it("while the sandbox is being opened leaves no worktree and no branch", async () => {
    const repository = createRepository(join(bench.path, "repository"));
    for (const wait of [0, 60, 120, 180, 240]) {
      const run = bench.start(["exec", "--repo", repository, "--", "sleep", "60"]);
      await setTimeout(wait);
      run.child.kill("SIGINT");
      const { code, signal } = await run.ended;
      // Before the program listens, the signal itself ends it.
      expect(code ?? signal).toSatisfy((ending: unknown) => ending === 130 || ending === "SIGINT");
    }
    expect(await bench.settled()).toEqual([]);
    expect(git(repository, "worktree", "list").split("\n")).toHaveLength(1);
    expect(git(repository, "branch", "--list", "glovebox/*")).toBe("");
  });

  it("with --json still gives one document", async () => {
    const run = bench.start(["exec", "--json", "--", "sh", "-c", "while :; do sleep 0.05; done"]);
    await opened();
    run.child.kill("SIGTERM");
    const { code, stdout } = await run.ended;
    expect(code).toBe(143);
    expect(JSON.parse(stdout)).toMatchObject({ timedOut: false, sandbox: { backend: "local" } });
    expect(bench.leftovers()).toEqual([]);
  });

  it("SIGSTOP and SIGCONT only make it wait", async () => {
    const run = bench.start(["exec", "--", "sh", "-c", "echo ready; read line; echo $line"]);
    await run.printed("ready\n");
    run.child.kill("SIGTSTP");
    run.child.kill("SIGCONT");
    run.child.stdin?.end("went on\n");
    expect(await run.ended).toMatchObject({ code: 0, stdout: "ready\nwent on\n" });
  });
});

describe("a terminal that goes away", () => {
  // Only the first process of a terminal is told; it outlives this to tell how the program ended.
  const glovebox = `"${process.execPath}" "${program}"`;
  it.each([
    `trap 'kill -HUP $!' HUP; ${glovebox} exec -- sh -c 'echo ready; sleep 600' & wait; wait $!`,
    `trap "" HUP; ${glovebox} shell -- sh -c 'echo ready; sleep 600'`,
  ])("ends all of it, in order: %s", async (line) => {
    const end = join(bench.path, "end");
    const script = `${line}; echo $? > "${end}.new"; mv "${end}.new" "${end}"`;
    const env = { ...bench.env, SHELL: "/bin/sh" };
    const terminal = spawn("script", ["-qec", script, "/dev/null"], { cwd: bench.path, env });
    await new Promise<void>((resolve) => {
      terminal.stdout.on("data", (chunk: Buffer) => chunk.includes("ready") && resolve());
    });
    terminal.kill("SIGKILL");
    await expect.poll(() => existsSync(end)).toBe(true);
    expect(readFileSync(end, "utf8")).toBe("129\n");
    expect(await bench.settled()).toEqual([]);
  });
});

describe("a reader that goes away", () => {
  it("ends the command and takes everything down: exit 141", async () => {
    const line = `"${process.execPath}" "${program}" exec -- yes | head -n 1; echo "\${PIPESTATUS[0]}"`;
    const { stdout } = await promisify(execFile)("bash", ["-c", line], { cwd: bench.path, env: bench.env });
    expect(stdout).toBe("y\n141\n");
    expect(bench.leftovers()).toEqual([]);
  });

  it("is not one whose disk is full: that is told, and the exit code is ours", async () => {
    for (const args of ["exec -- echo hi", "exec --json -- true", "version"]) {
      const line = `"${process.execPath}" "${program}" ${args} > /dev/full; echo "$?"`;
      const { stdout, stderr } = await promisify(execFile)("sh", ["-c", line], { cwd: bench.path, env: bench.env });
      expect(stdout).toBe("1\n");
      expect(stderr).toMatch(/^glovebox: cannot write the output: ENOSPC.*\nhint: \S.*\n$/);
    }
    expect(bench.leftovers()).toEqual([]);
  });

  it("also when the command ignores it", async () => {
    const script = 'trap "" PIPE; while :; do echo line 2>/dev/null; done';
    const run = bench.start(call(script));
    await run.printed("line\n");
    run.child.stdout?.destroy();
    expect(await run.ended).toMatchObject({ code: 141 });
    expect(bench.leftovers()).toEqual([]);
  });
});

/** Waits until a sandbox of the bench is in use. */
async function opened(): Promise<void> {
  const states = async (): Promise<unknown> => (await listSandboxes()).map(({ state }) => state);
  await expect.poll(states, { interval: 20 }).toContain("ready");
}
