import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { SandboxEvent } from "../../contracts/types.js";
import { addResource, createRecord, readRecord, updateRecord } from "../../src/ledger/records.js";
import { openKeptRecord, removeRecorded } from "../../src/ledger/remove-recorded.js";
import { runtimeDir } from "../../src/machine/home.js";
import { currentOwner } from "../../src/machine/owner.js";
import { removeResource } from "../../src/sandbox/backends/local/cleanup.js";
import { hostGit, inStore } from "../../src/sandbox/git/host/host-git.js";
import { withRepositoryLock } from "../../src/sandbox/git/repository/repository-lock.js";
import { listSandboxes, reap, removeSandbox } from "../../src/sandbox/reap.js";
import { processesWith } from "../support/processes/host-processes.js";
import { compileSources, startChild } from "../support/run/compiled.js";
import { createRepository, createScratch, git, type Scratch } from "../support/scratch.js";

let scratch: Scratch;
let repo: string;
let compiled: ReturnType<typeof compileSources>;
beforeAll(() => {
  compiled = compileSources();
});
afterAll(() => compiled.remove());
beforeEach(() => {
  scratch = createScratch();
  repo = createRepository(join(scratch.path, "repo"));
});
afterEach(() => scratch.remove());

const dead = { ...currentOwner(), startTime: "1" };
const foreign = { ...currentOwner(), pidNs: "pid:[1]" };

/** Everything that a sandbox could leave: refs, worktrees, git's own files, directories, records, locks. */
function census(): unknown {
  const files = (path: string): string[] => (existsSync(path) ? readdirSync(path) : []);
  return {
    worktrees: git(repo, "worktree", "list"),
    refs: git(repo, "for-each-ref"),
    gitFiles: execFileSync("find", [join(repo, ".git"), "-name", "*.lock", "-o", "-path", "*/worktrees*"]).toString(),
    directories: readdirSync(scratch.path).filter((name) => name.startsWith("harness-")),
    records: files(join(scratch.home, "sandboxes")),
    locks: files(join(scratch.home, "locks")),
  };
}

async function makeDirectory(id: string): Promise<string> {
  const path = join(scratch.path, `harness-${id}`);
  await createRecord({ id, backend: "local", workDir: path });
  await addResource(id, { kind: "directory", path });
  mkdirSync(path);
  return path;
}

/** A `git` that kills the process which started it, at one point of its work. */
function plantGit(subcommand: string, when: "before" | "after"): Record<string, string> {
  const bin = join(scratch.path, "bin");
  mkdirSync(bin);
  const real = execFileSync("sh", ["-c", "command -v git"]).toString().trim();
  const kill = "kill -9 $PPID";
  const steps = when === "before" ? `${kill}; exit 1` : `trap '' TERM; ${real} "$@"; ${kill}; exit 1`;
  writeFileSync(
    join(bin, "git"),
    `#!/bin/sh\ncase " $* " in *" ${subcommand} "*) ${steps};; esac\nexec ${real} "$@"\n`,
    {
      mode: 0o755,
    },
  );
  return { PATH: `${bin}:${process.env["PATH"]}` };
}

describe("a process is killed while it makes a worktree", () => {
  test.each([
    ["rev-parse", "before"],
    ["update-ref", "before"],
    ["update-ref", "after"],
    ["read-tree", "before"],
    ["read-tree", "after"],
  ] as const)("%s, %s", async (subcommand, when) => {
    const before = census();
    const args = ["end", repo, scratch.path, "one", "two"];
    const child = startChild(compiled.directory, "add-worktree.mjs", args, plantGit(subcommand, when));
    expect((await child.ended).signal).toBe("SIGKILL");
    const [first, second] = await Promise.all([reap(), reap()]);
    expect([...first.failed, ...second.failed]).toEqual([]);
    const third = await reap();
    expect(third).toEqual({ removed: [], kept: [], failed: [] });
    expect(census()).toEqual({ ...(before as object), records: [], locks: [] });
  });

  test("a git that was writing files ends with its process", async () => {
    const started = join(scratch.path, "started");
    writeFileSync(join(repo, ".gitattributes"), "*.txt filter=slow\n");
    git(repo, "add", "-A");
    git(repo, "commit", "--quiet", "-m", "slow");
    const smudge = `echo $PPID > ${started}.new; mv ${started}.new ${started}; exec sleep 20`;
    git(repo, "config", "--file", join(scratch.path, ".gitconfig"), "filter.slow.smudge", smudge);
    const env = { HOME: scratch.path, TEST_GIT_FILTERS: "slow" };
    const child = startChild(compiled.directory, "add-worktree.mjs", ["end", repo, scratch.path, "one"], env);
    await expect.poll(() => existsSync(started)).toBe(true);
    const gitPid = Number(readFileSync(started, "utf8"));
    child.kill();
    await child.ended;
    await expect.poll(() => existsSync(`/proc/${gitPid}`)).toBe(false);
    expect((await reap()).removed).toEqual(["one"]);
    expect(readdirSync(scratch.path)).not.toContain("harness-one");
  });

  test("a git that is about to write a ref goes on, and is waited for", async () => {
    const before = census();
    const real = execFileSync("sh", ["-c", "command -v git"]).toString().trim();
    const bin = join(scratch.path, "bin");
    const begun = join(scratch.path, "begun");
    const write = `{ touch ${begun}; sleep 4; echo "create refs/heads/work/one $(${real} -C ${repo} rev-parse HEAD)"; }`;
    mkdirSync(bin);
    writeFileSync(
      join(bin, "git"),
      `#!/bin/sh\ncase " $* " in *" update-ref "*) ${write} | ${real} -C ${repo} update-ref --create-reflog -m "glovebox: created for one" --stdin; exit;; esac\nexec ${real} "$@"\n`,
      { mode: 0o755 },
    );
    const args = ["end", repo, scratch.path, "one"];
    const child = startChild(compiled.directory, "add-worktree.mjs", args, { PATH: `${bin}:${process.env["PATH"]}` });
    await expect.poll(() => existsSync(begun)).toBe(true);
    child.kill();
    await child.ended;
    expect(await reap()).toMatchObject({ removed: ["one"], failed: [] });
    expect(census()).toEqual({ ...(before as object), records: [], locks: [] });
    expect(processesWith(bin)).toEqual([]);
  });

  test("the lock of a ref that a git left for ever is removed; one that a live git holds is not", async () => {
    const before = census();
    await createRecord({ id: "one", backend: "local", workDir: join(scratch.path, "harness-one") });
    const sha = git(repo, "rev-parse", "HEAD");
    await addResource("one", { kind: "branch", repo: join(repo, ".git"), name: "work/one", sha, mark: "glovebox" });
    await addResource("one", { kind: "snapshots", sandbox: "one", repo: join(repo, ".git") });
    await updateRecord("one", { owner: dead });
    const holder = spawn("git", ["update-ref", "--stdin"], { cwd: repo });
    const ended = new Promise((resolve) => holder.once("close", resolve));
    holder.stdin.write(`start\ncreate refs/heads/work/one ${sha}\nprepare\n`);
    const lock = join(repo, ".git", "refs", "heads", "work", "one.lock");
    await expect.poll(() => existsSync(lock)).toBe(true);
    const held = await reap();
    expect(held.failed).toMatchObject([{ id: "one", error: { code: "unavailable" } }]);
    expect(existsSync(lock)).toBe(true);
    holder.kill("SIGKILL");
    await ended;
    mkdirSync(join(repo, ".git", "refs", "glovebox", "one"), { recursive: true });
    writeFileSync(join(repo, ".git", "refs", "glovebox", "one", "1.lock"), "");
    expect(existsSync(lock)).toBe(true);
    // The snapshots are gone from the record by now: what is not finished is looked for once more.
    await addResource("one", { kind: "snapshots", sandbox: "one", repo: join(repo, ".git") });
    expect(await reap()).toMatchObject({ removed: ["one"], failed: [] });
    expect(census()).toEqual({ ...(before as object), records: [], locks: [] });
  });

  test("the lock of all packed refs that a killed git of ours left is removed; somebody else's is not", async () => {
    const packed = join(repo, ".git", "packed-refs.lock");
    const ref = "refs/heads/other";
    const remove = (): Promise<string> =>
      withRepositoryLock(join(repo, ".git"), () => hostGit(["update-ref", "-d", ref], inStore(join(repo, ".git"))));
    // It was there before: nobody knows whose it is.
    writeFileSync(packed, "");
    await expect(remove()).rejects.toMatchObject({ code: "conflict" });
    expect(existsSync(packed)).toBe(true);
    rmSync(packed);
    // Nor when somebody held our lock later, and died.
    const hold = async (): Promise<ReturnType<typeof startChild>> => {
      const child = startChild(compiled.directory, "hold-lock.mjs", ["hold", `repo:${join(repo, ".git")}`]);
      expect(await child.line()).toBe("held");
      return child;
    };
    writeFileSync(packed, "");
    const later = await hold();
    later.kill();
    await later.ended;
    await withRepositoryLock(join(repo, ".git"), async () => expect(existsSync(packed)).toBe(true));
    rmSync(packed);
    // The holder of our lock died with its git.
    const holder = await hold();
    writeFileSync(packed, "");
    holder.kill();
    await holder.ended;
    expect(existsSync(packed)).toBe(true);
    await withRepositoryLock(join(repo, ".git"), async () => expect(existsSync(packed)).toBe(false));
    // The git alone was killed, whatever it had said before: told, and mended at once.
    const script = `!echo 'error: something else' >&2; touch ${packed}; kill -9 $PPID`;
    const killed = withRepositoryLock(join(repo, ".git"), () =>
      hostGit(["-c", `alias.die=${script}`, "die"], inStore(join(repo, ".git"))),
    );
    await expect(killed).rejects.toMatchObject({ message: expect.stringContaining("something else") });
    expect(existsSync(packed)).toBe(false);
    // One that failed by itself has taken its locks away; this one is somebody else's.
    const failed = withRepositoryLock(join(repo, ".git"), () =>
      hostGit(["-c", `alias.fail=!touch ${packed}; exit 1`, "fail"], inStore(join(repo, ".git"))),
    );
    await expect(failed).rejects.toMatchObject({ code: "internal" });
    expect(existsSync(packed)).toBe(true);
    rmSync(packed);
    await remove();
    expect(git(repo, "for-each-ref", ref)).toBe("");
  });

  test("reap mends a repository that nobody works on any more, as that of a kept sandbox", async () => {
    const packed = join(repo, ".git", "packed-refs.lock");
    const holder = startChild(compiled.directory, "hold-lock.mjs", ["hold", `repo:${join(repo, ".git")}`]);
    expect(await holder.line()).toBe("held");
    writeFileSync(packed, "");
    expect(await reap()).toMatchObject({ failed: [] });
    expect(existsSync(packed)).toBe(true);
    holder.kill();
    await holder.ended;
    expect(await reap()).toMatchObject({ failed: [] });
    expect([existsSync(packed), readdirSync(join(scratch.home, "locks"))]).toEqual([false, []]);
  });

  test("killed at some moment", async () => {
    const before = census();
    for (let round = 0; round < 6; round++) {
      const child = startChild(compiled.directory, "add-worktree.mjs", [
        "wait",
        repo,
        scratch.path,
        `r${round}a`,
        `r${round}b`,
      ]);
      const parent = join(scratch.home, "sandboxes");
      await expect.poll(() => existsSync(join(parent, `r${round}a`)), { interval: 5 }).toBe(true);
      await new Promise((resolve) => setTimeout(resolve, round * 25));
      child.kill();
      await child.ended;
    }
    expect((await reap()).failed).toEqual([]);
    expect(census()).toEqual({ ...(before as object), records: [], locks: [] });
  });
});

describe("what is not left over", () => {
  test("a live process's, a kept and a foreign one stay, with everything of theirs", async () => {
    const live = startChild(compiled.directory, "add-worktree.mjs", ["wait", repo, scratch.path, "live"]);
    const kept = startChild(compiled.directory, "add-worktree.mjs", ["keep", repo, scratch.path, "kept"]);
    try {
      await live.line();
      await kept.ended;
      const far = await makeDirectory("far");
      await updateRecord("far", { state: "ready", owner: foreign });
      const before = census();
      const report = await reap();
      expect(report).toEqual({ removed: [], kept: ["far", "kept", "live"], failed: [] });
      expect({ ...(census() as object), locks: [] }).toEqual({ ...(before as object), locks: [] });
      expect(existsSync(far)).toBe(true);
      const list = await listSandboxes();
      expect(list.map(({ id, state, alive }) => [id, state, alive])).toEqual([
        ["far", "ready", true],
        ["kept", "kept", false],
        ["live", "ready", true],
      ]);
      await expect(removeSandbox("live")).rejects.toMatchObject({
        code: "conflict",
        message: expect.stringContaining(`${live.pid}`),
      });
    } finally {
      live.kill();
      await live.ended;
    }
    expect((await reap()).removed).toEqual(["live"]);
    await removeSandbox("kept");
    expect(git(repo, "worktree", "list").split("\n")).toHaveLength(1);
    expect(git(repo, "branch", "--list", "work/*")).toBe("");
    await expect(removeSandbox("kept")).rejects.toMatchObject({ code: "not_found" });
  });

  test("a kept one goes when its time is over, not before and not while it is open", async () => {
    const path = await makeDirectory("one");
    await updateRecord("one", { state: "kept", owner: undefined, expiresAt: "2999-01-01T00:00:00.000Z" });
    expect((await reap()).kept).toEqual(["one"]);
    await updateRecord("one", { expiresAt: "2001-01-01T00:00:00.000Z", owner: currentOwner() });
    expect((await reap()).kept).toEqual(["one"]);
    await updateRecord("one", { owner: dead });
    expect((await reap()).removed).toEqual(["one"]);
    expect(existsSync(path)).toBe(false);
  });

  test("a kept one outlives the process that opened it again", async () => {
    const path = await makeDirectory("one");
    await updateRecord("one", { state: "kept", owner: dead });
    expect((await reap()).kept).toEqual(["one"]);
    expect((await openKeptRecord("one")).owner).toEqual(currentOwner());
    await expect(openKeptRecord("one")).rejects.toMatchObject({ code: "conflict" });
    await expect(openKeptRecord("none")).rejects.toMatchObject({ code: "not_found" });
    expect(existsSync(path)).toBe(true);
  });

  test("a directory without a record stays", async () => {
    mkdirSync(join(scratch.path, "harness-stray"));
    await reap();
    expect(readdirSync(scratch.path)).toContain("harness-stray");
  });
});

describe("reap", () => {
  test("a signal ends it after the one that is being removed; the others stay for the next time", async () => {
    for (const id of ["one", "two", "three"]) {
      await makeDirectory(id);
      await updateRecord(id, { owner: dead });
    }
    const stop = new AbortController();
    const report = await reap({ signal: stop.signal, onEvent: () => stop.abort() });
    expect([report.removed.length, report.kept.length, report.failed.length]).toEqual([1, 2, 0]);
    expect((await reap()).removed.toSorted()).toEqual(report.kept.toSorted());
  });

  test("a dry run tells and removes nothing", async () => {
    const path = await makeDirectory("one");
    await updateRecord("one", { owner: dead });
    expect(await reap({ dryRun: true })).toEqual({ removed: ["one"], kept: [], failed: [] });
    expect([existsSync(path), (await readRecord("one"))?.state]).toEqual([true, "creating"]);
  });

  test("what cannot be removed stays in the ledger, with what is left, and is an event", async () => {
    const path = await makeDirectory("one");
    await updateRecord("one", { owner: dead });
    const strange = { kind: "balloon", colour: "red" };
    const before = await readRecord("one");
    await updateRecord("one", { resources: [strange, ...(before?.resources ?? [])] });
    const other = await makeDirectory("two");
    await updateRecord("two", { owner: dead });
    const events: SandboxEvent[] = [];
    for (let round = 0; round < 2; round++) {
      const report = await reap({ onEvent: (event) => events.push(event) });
      expect(report.failed).toMatchObject([{ id: "one", error: { code: "unsupported", backend: "local" } }]);
    }
    expect(events.map((event) => [event.type, event.sandboxId])).toEqual([
      ["leak", "one"],
      ["teardown", "two"],
      ["leak", "one"],
    ]);
    expect([existsSync(path), existsSync(other)]).toEqual([false, false]);
    expect(await readRecord("one")).toMatchObject({ state: "removing", resources: [strange] });
  });

  test("resources go last first", async () => {
    const outer = await makeDirectory("one");
    const target = join(scratch.path, "target");
    mkdirSync(target);
    // Were the outer one removed first, the inner path would be gone before its own remover refused it.
    await addResource("one", { kind: "cgroup", path: join(outer, "x") });
    await updateRecord("one", { owner: dead });
    symlinkSync(target, join(outer, "link"));
    expect((await reap()).failed).toMatchObject([{ id: "one", error: { code: "invalid_path" } }]);
    expect(existsSync(outer)).toBe(true);
  });

  test("a damaged record is reported and stops nobody", async () => {
    await makeDirectory("bad");
    writeFileSync(join(runtimeDir("bad"), "record.json"), "{");
    await makeDirectory("one");
    await updateRecord("one", { owner: dead });
    const report = await reap();
    expect(report).toMatchObject({ removed: ["one"], kept: [], failed: [{ id: "bad", error: { code: "tampered" } }] });
    expect(await listSandboxes()).toEqual([{ id: "bad", state: "damaged", alive: false }]);
  });

  test("an owner takes its own down, twice without harm", async () => {
    const path = await makeDirectory("one");
    expect(
      await removeRecorded(
        "one",
        () => true,
        async () => removeResource,
      ),
    ).toBe(true);
    expect(
      await removeRecorded(
        "one",
        () => true,
        async () => removeResource,
      ),
    ).toBe(false);
    expect([existsSync(path), await readRecord("one")]).toEqual([false, undefined]);
  });
});
