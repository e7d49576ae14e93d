import { existsSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { basename, dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { listRuns, type RunReport, removeRun, resumeRun } from "../../src/harness.js";
import type { Sandbox, SandboxOptions } from "../../src/sandbox/types.js";
import {
  capabilitiesOf,
  deleteSnapshot,
  listSandboxes,
  listSnapshots,
  openSandbox,
  reap,
  removeSandbox,
} from "../../src/sandbox.js";
import { type Bench, createBench } from "../support/cli.js";
import { type OldHome, unpackOldHome } from "../support/old-home.js";
import { createScratch, git, type Scratch } from "../support/scratch.js";
import { treeDigest } from "../support/tree-digest.js";

// The tests go on where the one before has stopped: a home is listed, reaped, used and emptied.

let scratch: Scratch;
let old: OldHome;
let cli: Bench;
let outside: Server;

beforeAll(async () => {
  scratch = createScratch();
  cli = createBench(scratch);
  old = unpackOldHome(scratch);
  outside = createServer((socket) => socket.on("error", () => undefined).end("outside\n"));
  await new Promise<void>((resolve) => outside.listen(0, "127.0.0.1", resolve));
});
afterAll(() => {
  outside.close();
  scratch.remove();
});

const REPOSITORY: readonly string[] = ["worktree", "overlay", "copy", "clone"];
const OTHERS: readonly string[] = ["empty", "baseDir"];

/** One of them was made with a short deadline. */
const SLOW: SandboxOptions = { operationTimeout: 60_000 };

const filesIn = (...path: string[]): string[] => readdirSync(at(...path)).sort();
const at = (...path: string[]): string => join(scratch.path, ...path);
const ids = (all: readonly { id: string }[]): string[] => all.map(({ id }) => id).sort();
const idOf = (kind: string): string => old.kept[kind] ?? "";
const savedOf = (kind: string): string => old.saved[kind] ?? "";
const refs = (repo: string): string[] => git(at(repo), "for-each-ref", "--format=%(refname)").split("\n");

/** Opens a kept sandbox for a while. */
async function withKept<T>(id: string, work: (sandbox: Sandbox) => Promise<T>, opts: SandboxOptions = {}): Promise<T> {
  const sandbox = await openSandbox({ id, backend: "local", ...opts });
  try {
    return await work(sandbox);
  } finally {
    await sandbox.teardown();
  }
}

/** What the inside reads from a server of this machine. */
async function readOutside(sandbox: Sandbox): Promise<string> {
  const { port } = outside.address() as { port: number };
  const script = `exec 3<>/dev/tcp/127.0.0.1/${port} && cat <&3`;
  return (await sandbox.exec({ argv: ["bash", "-c", script] })).stdout;
}

/** What the proxy of a sandbox answers when it is asked for a way to a host. */
async function askProxy(sandbox: Sandbox, host: string): Promise<string> {
  const { hostname, port } = new URL((await sandbox.exec({ argv: ["printenv", "HTTPS_PROXY"] })).stdout.trim());
  const request = `CONNECT ${host} HTTP/1.1\\r\\nHost: ${host}\\r\\n\\r\\n`;
  const script = `exec 3<>/dev/tcp/${hostname}/${port}; printf '${request}' >&3; head -n 1 <&3`;
  return (await sandbox.exec({ argv: ["bash", "-c", script] })).stdout;
}

async function expectLatest(sandbox: Sandbox, kind: string): Promise<void> {
  expect(await sandbox.readFile("a.txt")).toBe(`${kind}, latest\n`);
  expect(await sandbox.readFile("new.txt")).toBe("not committed\n");
  expect(await sandbox.readFile("ignored/x.txt")).toBe(`${kind}, ignored since\n`);
  expect(await sandbox.stat("script.sh")).toMatchObject({ mode: 0o755 });
  expect(await sandbox.readFile("gone.txt")).toBe(null);
}

/** Of a snapshot with a commit that was made inside, where there is a repository. */
async function expectSaved(sandbox: Sandbox, kind: string): Promise<void> {
  expect(await sandbox.readFile("a.txt")).toBe(`${kind}, saved\n`);
  expect(await sandbox.readFile("new.txt")).toBe("not committed\n");
  expect(await sandbox.readFile("ignored/x.txt")).toBe(`${kind}, ignored\n`);
  expect(await sandbox.stat("script.sh")).toBe(null);
  if (!sandbox.capabilities.git) return;
  const { stdout } = await sandbox.shell("git log --format=%s; git status --short");
  expect(stdout).toBe("inside\nfirst\n?? new.txt\n");
}

describe("a home that version 0.1 made", () => {
  test("is listed as it was then", async () => {
    expect(await listSandboxes()).toEqual(old.sandboxes);
    expect(await listSnapshots()).toEqual(old.snapshots);
    const { stdout } = await cli.run(["ls", "--json"]);
    expect(JSON.parse(stdout)).toEqual(old.sandboxes);
    const states = (await listRuns()).map(({ runId, state }) => [runId, state]).sort();
    expect(states).toEqual([
      ["coded", "success"],
      ["failed", "failed"],
      ["killed", "interrupted"],
    ]);
  });

  test("loses to reap what dead processes left, and nothing else", async () => {
    const stays = ids(old.sandboxes).filter((id) => !old.leftovers.includes(id));
    const folders = stays.map((id) => `tmp/harness-${id}`).filter((name) => existsSync(at(name)));
    const look = (): unknown =>
      [
        ...stays.map((id) => `home/sandboxes/${id}`),
        ...["base", "shared", "home/runs", "home/trust", "repo/.glovebox", ...folders],
      ].map((name) => treeDigest(at(name)));
    const before = look();
    expect(old.leftovers).toHaveLength(11);
    expect((await reap({ dryRun: true })).removed.sort()).toEqual([...old.leftovers].sort());
    const { removed, kept, failed } = await reap();
    expect(failed).toEqual([]);
    expect([removed.sort(), kept.sort()]).toEqual([[...old.leftovers].sort(), stays]);
    expect(ids(await listSandboxes())).toEqual(stays);
    expect(await listSnapshots()).toEqual(old.snapshots);
    expect(look()).toEqual(before);
    expect(filesIn("home/sandboxes")).toEqual(stays);
    expect(filesIn("tmp")).toEqual(folders.map((name) => basename(name)).sort());
    expect(filesIn("home/locks")).toEqual([]);
    expect(filesIn("home/bases").flatMap((name) => filesIn("home/bases", name))).toEqual([
      git(at("repo"), "rev-parse", "main"),
    ]);
    const ofSnapshots = old.snapshots.flatMap(({ id, archive, gitDir = "" }) => [
      `${id}.json`,
      ...(archive === undefined ? [] : [basename(archive)]),
      ...(dirname(gitDir) === at("home", "snapshots") ? [basename(gitDir)] : []),
    ]);
    expect(filesIn("home/snapshots")).toEqual(ofSnapshots.sort());
    expect(refs("other")).toEqual(["refs/heads/main"]);
    expect(refs("repo")).toEqual(
      [
        ...old.snapshots.flatMap(({ ref = "", gitDir }) => (gitDir === at("repo", ".git") ? [ref] : [])),
        `refs/glovebox/bases/${git(at("repo"), "rev-parse", "main")}`,
        ...["harness/failed/failed", "kept/crashed", "kept/worktree", "main"].map((name) => `refs/heads/${name}`),
      ].sort(),
    );
  });

  test.each([...REPOSITORY, ...OTHERS, "unconfined"])("%s: its files are as they were left", async (kind) => {
    await withKept(
      idOf(kind),
      async (sandbox) => {
        expect(sandbox.workDir).toBe(kind === "baseDir" ? at("base") : at("tmp", `harness-${idOf(kind)}`));
        await expectLatest(sandbox, kind);
        if (!REPOSITORY.includes(kind)) return;
        const { files } = await sandbox.changes();
        expect(files.map(({ path, status }) => `${status} ${path}`).sort()).toEqual([
          "added new.txt",
          "added script.sh",
          "deleted gone.txt",
          "modified a.txt",
        ]);
        const log = await sandbox.shell("git log --format=%s; git status --short", { maxOutput: 10_000 });
        expect(log.stdout).toBe("inside\nfirst\n M a.txt\n?? new.txt\n?? script.sh\n");
      },
      SLOW,
    );
  });

  test("keeps its sandboxes to the programs, output, deadline and mounts that they had", async () => {
    await withKept(
      idOf("worktree"),
      async (sandbox) => {
        await expect(sandbox.exec({ argv: ["id"] })).rejects.toMatchObject({ code: "command_not_allowed" });
        expect((await sandbox.exec({ argv: ["cat", "/shared/note"] })).stdout).toBe("from the host\n");
        expect((await sandbox.shell("echo x > /shared/note")).exitCode).not.toBe(0);
        const long = await sandbox.shell("i=0; while [ $i -lt 100 ]; do echo 0123456789; i=$((i+1)); done");
        expect(long.truncated.stdout).toBe(true);
        expect(long.stdout.length).toBeLessThan(400);
      },
      SLOW,
    );
    await withKept(idOf("worktree"), async (sandbox) => {
      expect(await sandbox.shell("sleep 30")).toMatchObject({ timedOut: true });
    });
    await withKept(idOf("baseDir"), async (sandbox) => {
      await expect(sandbox.exec({ argv: ["id"] })).rejects.toMatchObject({ code: "command_not_allowed" });
    });
    await withKept(idOf("copy"), async (sandbox) => {
      expect((await sandbox.shell("cp a.txt /shared/copied")).exitCode).toBe(0);
      expect(readFileSync(at("shared", "copied"), "utf8")).toBe("copy, latest\n");
    });
    expect(readFileSync(at("shared", "note"), "utf8")).toBe("from the host\n");
  });

  test("keeps them to the network that they had", async () => {
    for (const kind of ["worktree", "empty", "overlay"]) {
      expect(await withKept(idOf(kind), readOutside), kind).toBe("");
    }
    expect(await withKept(idOf("copy"), readOutside)).toBe("outside\n");
    const { refused, allowed } = await withKept(idOf("overlay"), async (sandbox) => ({
      refused: await askProxy(sandbox, "forbidden.invalid:443"),
      allowed: await askProxy(sandbox, "allowed.invalid:443"),
    }));
    expect(refused).toMatch(/^HTTP\/1\.1 403 /);
    // It may be asked for; only that there is no such host.
    expect(allowed).toMatch(/^HTTP\/1\.1 50\d /);
    await expect(withKept(idOf("empty"), readOutside, { network: "full" })).rejects.toMatchObject({
      code: "invalid_argument",
    });
  });

  test("keeps them to their limits, and to their kind of isolation", async ({ skip }) => {
    const unconfined = await withKept(idOf("unconfined"), async ({ capabilities }) => capabilities.isolation);
    const confined = await withKept(idOf("empty"), async ({ capabilities }) => capabilities.isolation);
    expect([unconfined, confined]).toEqual(["none", "namespaces"]);
    const { limits = [] } = (await capabilitiesOf("local")) ?? {};
    if (!limits.includes("pids") || !limits.includes("memory")) skip("this machine enforces no limits for this user");
    await withKept(idOf("limited"), async (sandbox) => {
      await expectLatest(sandbox, "limited");
      const many = "i=0; while [ $i -lt 60 ]; do sleep 20 & i=$((i+1)); echo $i > count; done; : > all";
      await sandbox.shell(many, { timeout: 5_000 });
      expect(await sandbox.stat("all")).toBe(null);
      expect(Number(await sandbox.readFile("count"))).toBeLessThan(40);
      const take = (mib: number) => ["dd", "if=/dev/zero", "of=/dev/null", `bs=${mib}M`, "count=1"];
      expect((await sandbox.exec({ argv: take(8) })).exitCode).toBe(0);
      expect((await sandbox.exec({ argv: take(512) })).exitCode).not.toBe(0);
    });
  });

  test.each([...REPOSITORY, ...OTHERS, "unconfined"])("%s: its snapshot brings back all files", async (kind) => {
    await withKept(
      idOf(kind),
      async (sandbox) => {
        await sandbox.restore(savedOf(kind));
        await expectSaved(sandbox, kind);
        if (kind === "baseDir") expect(await sandbox.readFile("file.txt")).toBe("the user's\n");
      },
      SLOW,
    );
  });

  test.each([...REPOSITORY, ...OTHERS])("%s: its fork has its files and its restrictions", async (kind) => {
    const fork = await withKept(idOf(kind), (sandbox) => sandbox.fork(), SLOW);
    try {
      await expectSaved(fork, kind);
      const argv = ["id"];
      if (!["worktree", "baseDir"].includes(kind)) expect((await fork.exec({ argv })).exitCode).toBe(0);
      else await expect(fork.exec({ argv })).rejects.toMatchObject({ code: "command_not_allowed" });
    } finally {
      await fork.teardown();
      await removeSandbox(fork.id);
    }
  });

  test("has a snapshot whose sandbox is gone, and whatever a killed process had open", async () => {
    await withKept(old.crashed, async (sandbox) => {
      expect(await sandbox.readFile("work.txt")).toBe("before the crash\n");
      await sandbox.restore(savedOf("gone"));
      await expectSaved(sandbox, "gone");
      const next = await sandbox.snapshot();
      await sandbox.deleteFile("a.txt");
      await sandbox.restore(next);
      await expectSaved(sandbox, "gone");
      await deleteSnapshot(next);
    });
  });

  test("has a run that was killed between two nodes, and goes on to its end", async () => {
    const { code, stdout, stderr } = await cli.run(["resume", "killed", "--json"]);
    expect(code, stderr).toBe(0);
    const report = JSON.parse(stdout) as RunReport;
    expect(report).toMatchObject({ runId: "killed", status: "success", resumedFrom: "second", intent: "repair it" });
    expect(report.nodes).toMatchObject([
      { id: "first", status: "success", reused: true },
      { id: "second", status: "success", output: "1\nwarm\nfrom the host\n" },
      { id: "third", status: "failure", tolerated: true, error: { code: "command_not_allowed" } },
      { id: "last", status: "success", output: "1\n2\n" },
    ]);
    expect(report.changes?.files).toEqual([{ path: "count", status: "added" }]);
    const run = at("repo", ".glovebox", "runs", "killed");
    expect(readFileSync(join(run, "changes.patch"), "utf8")).toContain("+1\n+2\n");
    expect(JSON.parse(readFileSync(join(run, "report.json"), "utf8"))).toEqual(report);
    const events = readFileSync(join(run, "events.jsonl"), "utf8").trimEnd().split("\n");
    const numbers = events.map((line) => (JSON.parse(line) as { seq: number }).seq);
    expect(numbers).toEqual(numbers.map((_, index) => index + 1));
  });

  test("has a run that failed, and goes on in the sandbox that was kept", async () => {
    writeFileSync(at("shared", "repaired"), "repaired\n");
    const report = await resumeRun({ runId: "failed" });
    expect(report).toMatchObject({ status: "success", sandbox: { type: "local", id: old.failed } });
    expect(report.nodes.map(({ id, reused, output }) => [id, reused === true, output])).toEqual([
      ["first", true, ""],
      ["second", false, "repaired\n"],
      ["last", false, "1\n"],
    ]);
  });

  test("has a run by code that was trusted, which goes on without being trusted again", async () => {
    const { code, stdout, stderr } = await cli.run(["resume", "coded", "--json"]);
    expect(code, stderr).toBe(0);
    expect((JSON.parse(stdout) as RunReport).nodes).toMatchObject([
      { id: "one", reused: true, output: "coded one" },
      { id: "two", status: "success", output: "coded two" },
    ]);
  });

  test("can be emptied, and then nothing is left", async () => {
    for (const { runId, state } of await listRuns()) {
      expect(state, runId).toBe("success");
      await removeRun(runId);
    }
    const [first = "", ...others] = ids(await listSandboxes());
    expect(others).toHaveLength(8);
    expect((await cli.run(["rm", first])).code).toBe(0);
    for (const id of others) await removeSandbox(id);
    for (const { id } of await listSnapshots()) await deleteSnapshot(id);
    // One that was used a moment ago stays.
    for (const name of filesIn("home/clones")) utimesSync(at("home", "clones", name), 0, 0);
    expect(await reap({ cache: 0 })).toMatchObject({ removed: [], kept: [], failed: [] });
    expect([await listSandboxes(), await listSnapshots(), await listRuns()]).toEqual([[], [], []]);
    expect(filesIn("home/bases").flatMap((name) => filesIn("home/bases", name))).toEqual([]);
    for (const folder of ["home/sandboxes", "home/snapshots", "home/runs", "home/clones", "home/locks", "tmp"]) {
      expect(filesIn(folder), folder).toEqual([]);
    }
    expect(filesIn("base")).toEqual(["a.txt", "file.txt", "ignored", "new.txt"]);
    for (const repo of ["repo", "other"]) {
      expect(refs(repo)).toEqual(["refs/heads/main"]);
      expect(git(at(repo), "worktree", "list").split("\n")).toHaveLength(1);
      expect(git(at(repo), "status", "--porcelain")).toBe("");
      expect(git(at(repo), "fsck", "--full", "--strict", "--no-dangling", "--no-progress")).toBe("");
    }
  });
});

describe("such a home", () => {
  test("of a machine that was started again: whoever opens a sandbox first takes the leftovers away", async () => {
    const own = createScratch();
    try {
      const bench = createBench(own);
      const made = unpackOldHome(own, { BOOT: "00000000-0000-4000-8000-000000000000" });
      const { stdout, code } = await bench.run(["exec", "--id", made.crashed, "--", "cat", "work.txt"]);
      expect([code, stdout]).toEqual([0, "before the crash\n"]);
      const left = made.sandboxes.filter(({ id }) => !made.leftovers.includes(id));
      expect(await listSandboxes()).toEqual(left);
      expect(await reap()).toMatchObject({ removed: [], failed: [] });
    } finally {
      own.remove();
    }
  });

  test("on a disk of several machines: what another one has open is not touched", async () => {
    const own = createScratch();
    try {
      const made = unpackOldHome(own, { HOST: "another machine" });
      const owned = made.leftovers.filter((id) => readRecord(own, id).includes('"owner"'));
      expect(owned).toHaveLength(10);
      const alive = (await listSandboxes()).filter((sandbox) => sandbox.alive);
      expect(ids(alive)).toEqual([...owned, made.crashed].sort());
      const { removed } = await reap({ dryRun: true });
      expect(removed.filter((id) => owned.includes(id))).toEqual([]);
      for (const id of [...owned, made.crashed]) {
        await expect(removeSandbox(id), id).rejects.toMatchObject({ code: "conflict" });
      }
    } finally {
      own.remove();
    }
  });
});

function readRecord({ home }: Scratch, id: string): string {
  return readFileSync(join(home, "sandboxes", id, "record.json"), "utf8");
}
