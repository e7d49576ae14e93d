import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createLocalSandbox } from "../../../../src/sandbox/backends/local.js";
import { listSandboxes } from "../../../../src/sandbox/reap.js";
import type { Sandbox } from "../../../../src/sandbox/types.js";
import { processesWith } from "../../../support/processes/host-processes.js";
import { compileSources, startChild } from "../../../support/run/compiled.js";
import { createRepository, createScratch, git, type Scratch } from "../../../support/scratch.js";
import { treeDigest } from "../../../support/tree-digest.js";

const isRoot = process.getuid?.() === 0;
let compiled: { directory: string; remove(): void };
let scratch: Scratch;
let repo: string;
beforeAll(() => {
  compiled = compileSources({ withGuests: true });
});
afterAll(() => compiled.remove());
beforeEach(() => {
  scratch = createScratch();
  repo = createRepository(join(scratch.path, "repo"));
});
afterEach(() => scratch.remove());

const markerOf = (name: string): string => `glovebox-crash-${process.pid}-${name}`;
const running = (name: string): number => processesWith(markerOf(name)).length;
/** Every control group of a sandbox, whatever the version. */
const groupsOf = (id: string): string[] =>
  ["", ...["memory", "cpu", "pids", "unified"]]
    .map((controller) => join("/sys/fs/cgroup", controller, "glovebox", id))
    .filter((path) => existsSync(path));
/** What of a repository only its user may change. */
const usersPart = (): unknown => {
  const head = ["HEAD", "config"].map((name) => readFileSync(join(repo, ".git", name), "utf8"));
  return { head, hooks: treeDigest(join(repo, ".git", "hooks")), refs: git(repo, "for-each-ref") };
};

interface Held {
  id: string;
  workDir: string;
}

test("[F-02] a manager that is killed takes its processes along; the rest goes with the next reap, and nothing else does", async () => {
  const before = usersPart();
  const limits = isRoot ? { limits: { pids: 100 } } : {};
  const hold = (name: string, options: object): ReturnType<typeof startChild> =>
    startChild(compiled.directory, "hold-sandbox.mjs", [JSON.stringify({ repo, ...options }), markerOf(name)]);
  const kept = hold("kept", { branch: "kept", keep: true });
  const { id: keptId, workDir: keptDir } = JSON.parse(await kept.line()) as Held;
  expect((await kept.ended).code).toBe(0);
  const live = hold("live", { branch: "live" });
  const victim = hold("victim", { branch: "victim", ...limits });
  try {
    const { id: liveId, workDir: liveDir } = JSON.parse(await live.line()) as Held;
    const { id, workDir } = JSON.parse(await victim.line()) as Held;
    await expect.poll(() => running("victim")).toBeGreaterThanOrEqual(5);
    expect(groupsOf(id).length).toBeGreaterThanOrEqual(isRoot ? 1 : 0);
    victim.kill();
    await victim.ended;
    await expect.poll(() => running("victim")).toBe(0);
    expect(processesWith(workDir)).toEqual([]);
    expect(existsSync(workDir)).toBe(true);

    const reaper = startChild(compiled.directory, "reap.mjs", []);
    expect(JSON.parse(await reaper.line())).toEqual({ removed: [id], kept: [keptId, liveId].sort(), failed: [] });
    expect([existsSync(workDir), ...groupsOf(id)]).toEqual([false]);
    expect((await listSandboxes()).map((each) => each.id).sort()).toEqual([keptId, liveId].sort());
    expect(
      git(repo, "worktree", "list", "--porcelain")
        .match(/^branch .*/gm)
        ?.sort(),
    ).toEqual(["kept", "live", "main"].map((name) => `branch refs/heads/${name}`));
    expect(git(repo, "branch", "--list", "victim")).toBe("");
    expect([existsSync(liveDir), existsSync(keptDir)]).toEqual([true, true]);
    expect(running("live")).toBeGreaterThanOrEqual(5);
  } finally {
    for (const child of [live, victim]) child.kill();
    await Promise.all([live.ended, victim.ended]);
  }
  await expect.poll(() => running("live")).toBe(0);
  await (await createLocalSandbox({ id: keptId, keep: false })).teardown();
  await startChild(compiled.directory, "reap.mjs", []).ended;
  expect(usersPart()).toEqual(before);
  expect(git(repo, "fsck", "--full", "--strict")).toBe("");
  expect(git(repo, "worktree", "list").split("\n")).toHaveLength(1);
});

describe("[F-01] a manager that is killed while it opens leaves nothing that the next reap does not find", () => {
  const entries = (path: string): string[] => (existsSync(path) ? readdirSync(path) : []);
  const runtimes = (): string => join(scratch.home, "sandboxes");
  const tree = (): string[] => entries(scratch.path).filter((name) => name.startsWith("harness-"));
  test.each<[string, () => boolean]>([
    ["its record is being written", () => entries(runtimes()).length > 0],
    ["its branch is there", () => entries(join(repo, ".git", "refs", "heads")).includes("early")],
    ["its worktree is registered", () => entries(join(repo, ".git", "worktrees")).length > 0],
    ["its directory is there", () => tree().length > 0],
    ["its files are there", () => tree().some((name) => existsSync(join(scratch.path, name, "a.txt")))],
    ["its walls are being built", () => processesWith(`${scratch.path}/harness-`).length > 0],
  ])("when %s", async (_, isReached) => {
    const before = usersPart();
    const options = JSON.stringify({ repo, branch: "early", ...(isRoot && { limits: { pids: 100 } }) });
    const args = [options, markerOf("early")];
    const child = startChild(compiled.directory, "hold-sandbox.mjs", args, { TMPDIR: scratch.path });
    await expect.poll(isReached, { interval: 1 }).toBe(true);
    child.kill();
    await child.ended;
    const alive = (): unknown[] => [markerOf("early"), `${scratch.path}/harness-`].flatMap(processesWith);
    await expect.poll(alive).toEqual([]);
    const reaper = startChild(compiled.directory, "reap.mjs", []);
    expect(JSON.parse(await reaper.line())).toMatchObject({ kept: [], failed: [] });
    await reaper.ended;
    expect(readdirSync(scratch.path).sort()).toEqual(["home", "repo"]);
    expect(readdirSync(runtimes())).toEqual([]);
    expect(usersPart()).toEqual(before);
    expect(git(repo, "worktree", "list").split("\n")).toHaveLength(1);
  });
});

describe("[F-03] a sandbox whose inside is ended from outside", () => {
  /** Bubblewrap on the host's side, or its child, the guest. */
  const processOf = (sandbox: Sandbox, which: "bwrap" | "guest"): number => {
    const found = processesWith(sandbox.workDir);
    const bwrap = found.find(({ argv }) => argv[0]?.endsWith("bwrap"))?.pid;
    const wanted = which === "bwrap" ? bwrap : found.find(({ parent }) => parent === bwrap)?.pid;
    expect(wanted).toBeGreaterThan(1);
    return wanted as number;
  };

  test.each(["bwrap", "guest"] as const)(
    "kill -9 of %s: the call and all later ones are backend_lost",
    async (which) => {
      const sandbox = await createLocalSandbox({ repo, branch: which });
      const marker = markerOf(which);
      const call = sandbox.exec({ argv: ["sh", "-c", "while :; do sleep 1; done", marker] });
      const lost = expect(call).rejects.toMatchObject({ code: "backend_lost" });
      await expect.poll(() => processesWith(marker).length).toBeGreaterThan(0);
      process.kill(processOf(sandbox, which), "SIGKILL");
      await lost;
      await expect(sandbox.exec({ argv: ["true"] })).rejects.toMatchObject({ code: "backend_lost" });
      await expect(sandbox.readFile("a.txt")).rejects.toMatchObject({ code: "backend_lost" });
      await expect.poll(() => processesWith(marker)).toEqual([]);
      await sandbox.teardown();
      expect(existsSync(sandbox.workDir)).toBe(false);
      expect(git(repo, "worktree", "list").split("\n")).toHaveLength(1);
      expect(await listSandboxes()).toEqual([]);
      await expect(sandbox.exec({ argv: ["true"] })).rejects.toMatchObject({ code: "closed" });
    },
  );
});

test("[F-25] twenty sandboxes at once leave nothing behind", async () => {
  const marker = markerOf("census");
  const census = async (): Promise<unknown> => ({
    processes: processesWith(marker).length + processesWith(scratch.path).length,
    // Other work on this machine mounts, too.
    mounts: readFileSync("/proc/self/mountinfo", "utf8")
      .split("\n")
      .filter((line) => line.includes(scratch.path)),
    directories: readdirSync(join(scratch.path, "tmp")),
    descriptors: readdirSync("/proc/self/fd").length,
    records: await listSandboxes(),
    worktrees: git(repo, "worktree", "list"),
    branches: git(repo, "branch", "--list"),
  });
  const tmp = process.env["TMPDIR"];
  mkdirSync(join(scratch.path, "tmp"));
  process.env["TMPDIR"] = join(scratch.path, "tmp");
  try {
    // The first one opens what the process keeps for good.
    await (await createLocalSandbox({ repo })).teardown();
    const before = await census();
    const options = isRoot ? { limits: { pids: 50 } } : {};
    const all = await Promise.all(Array.from({ length: 20 }, () => createLocalSandbox({ repo, ...options })));
    try {
      const work = `touch here; sh -c 'while :; do sleep 1; done' ${marker}`;
      await Promise.all(all.map((sandbox) => sandbox.spawn({ argv: ["sh", "-c", work] })));
      await expect.poll(() => processesWith(marker).length).toBeGreaterThanOrEqual(20);
    } finally {
      await Promise.all(all.map((sandbox) => sandbox.teardown()));
    }
    await expect.poll(census).toEqual(before);
    expect(all.flatMap(({ id }) => groupsOf(id))).toEqual([]);
  } finally {
    if (tmp === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = tmp;
  }
});
