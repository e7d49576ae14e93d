import { execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import {
  applyRun,
  type BlueprintSpec,
  changesOf,
  findRunDirectory,
  type HarnessOptions,
  listRuns,
  pushRunAgain,
  removeRun,
  resumeRun,
  runHarness,
  stopRun,
} from "../../src/harness.js";
import { listSandboxes, listSnapshots, openSandbox, removeSandbox } from "../../src/sandbox.js";
import { createRepository, createScratch, git, type Scratch } from "../support/scratch.js";

let scratch: Scratch;
let repo: string;
let elsewhere: string;
let count = 0;
beforeAll(() => {
  scratch = createScratch();
});
afterAll(() => scratch.remove());
afterEach(async () => {
  for (const { id } of await listSandboxes()) await removeSandbox(id).catch(() => undefined);
});

/** A repository of its own, and a directory outside it that nothing may reach. */
function place(): void {
  count += 1;
  repo = createRepository(join(scratch.path, `repo-${count}`));
  elsewhere = join(scratch.path, `elsewhere-${count}`);
  mkdirSync(elsewhere);
  writeFileSync(join(elsewhere, "precious"), "precious\n");
}

const command = (id: string, script: string): { id: string; kind: "command"; shell: string } => ({
  id,
  kind: "command",
  shell: script,
});
const flaky: BlueprintSpec = {
  name: "flaky",
  nodes: [command("one", "echo 1 >> count"), command("two", "test -e go")],
};

function run(more: Partial<HarnessOptions> = {}): ReturnType<typeof runHarness> {
  return runHarness({ blueprint: flaky, repo, intent: "try", sandboxType: "local", ...more });
}
const runs = (): string => join(repo, ".glovebox", "runs");
const untouched = (): void => {
  expect(readdirSync(elsewhere)).toEqual(["precious"]);
  expect(readFileSync(join(elsewhere, "precious"), "utf8")).toBe("precious\n");
};

describe("a run that the repository brings along", () => {
  test("is no run of this user: no verb takes it", async () => {
    place();
    const first = await run({ runId: `planted-${count}` });
    const id = first.runId;
    const copy = join(scratch.path, `copy-${count}`);
    cpSync(join(runs(), id), copy, { recursive: true });
    await removeRun(id);
    cpSync(copy, join(runs(), id), { recursive: true });
    const plan = JSON.parse(readFileSync(join(runs(), id, "run.json"), "utf8")) as { sandbox: object };
    writeFileSync(
      join(runs(), id, "run.json"),
      JSON.stringify({ ...plan, sandbox: { ...plan.sandbox, isolation: "none" } }),
    );
    const before = process.cwd();
    process.chdir(repo);
    try {
      const calls = [
        resumeRun({ runId: id }),
        stopRun(id),
        applyRun(id),
        pushRunAgain(id, { githubToken: "x" }),
        removeRun(id),
        findRunDirectory(id),
        changesOf(id),
      ];
      // At once: one that nobody awaits yet when it rejects would be an error of its own.
      await Promise.all(calls.map((call) => expect(call).rejects.toMatchObject({ code: "not_found" })));
      expect((await listRuns()).map(({ runId }) => runId)).not.toContain(id);
    } finally {
      process.chdir(before);
    }
    expect(existsSync(join(runs(), id, "run.json"))).toBe(true);
  });

  test("cannot take the place of one that is registered: a changed plan is refused", async () => {
    place();
    const { runId } = await run();
    const path = join(runs(), runId, "run.json");
    const text = readFileSync(path, "utf8");
    const plan = JSON.parse(text) as { sandbox: object };
    writeFileSync(path, JSON.stringify({ ...plan, sandbox: { ...plan.sandbox, isolation: "none" } }));
    await expect(resumeRun({ runId })).rejects.toMatchObject({ code: "tampered" });
    await expect(pushRunAgain(runId, { githubToken: "x" })).rejects.toMatchObject({ code: "tampered" });
    writeFileSync(path, text);
    expect(await resumeRun({ runId })).toMatchObject({ status: "failed", resumedFrom: "two" });
  });

  test("cannot name a sandbox or a snapshot of this user's, say what was done, or change the patch", async () => {
    place();
    const other = await openSandbox({ backend: "local", repo, keep: true });
    const snapshot = await other.snapshot();
    await other.teardown();
    const { runId, sandbox } = await run();
    const folder = join(runs(), runId);
    const report = JSON.parse(readFileSync(join(folder, "report.json"), "utf8")) as { nodes: { id: string }[] };
    const planted = {
      ...report,
      nodes: report.nodes.map((node) => ({ ...node, status: "success" })),
      sandbox: { type: "local", id: other.id, kept: true },
    };
    writeFileSync(join(folder, "report.json"), JSON.stringify(planted));
    writeFileSync(join(folder, "end.json"), JSON.stringify({ snapshotId: snapshot }));
    mkdirSync(join(folder, "checkpoints"), { recursive: true });
    const checkpoint = { version: 1, index: 0, nodeId: "one", isSaved: true, snapshotId: snapshot, results: {} };
    writeFileSync(join(folder, "checkpoints", "1-one.json"), JSON.stringify(checkpoint));
    writeFileSync(join(folder, "changes.patch"), "diff --git a/evil b/evil\nnew file mode 100644\n");
    expect((await changesOf(runId)).patch).not.toContain("evil");
    const again = await resumeRun({ runId });
    expect(again).toMatchObject({ status: "failed", resumedFrom: "two", sandbox: { id: sandbox?.id } });
    await removeRun(runId);
    expect((await listSandboxes()).map(({ id }) => id)).toEqual([other.id]);
    expect((await listSnapshots()).map(({ id }) => id)).toContain(snapshot);
  });
});

describe("links that the repository brings along", () => {
  test.each([
    [".glovebox", ".glovebox"],
    [".glovebox/runs", "runs"],
  ])("%s: a run is refused, and nothing is written behind it", async (path) => {
    place();
    if (path !== ".glovebox") mkdirSync(join(repo, ".glovebox"));
    symlinkSync(elsewhere, join(repo, path));
    await expect(run()).rejects.toMatchObject({
      code: "path_confinement",
      message: expect.stringContaining(`${join(repo, path)} is a symbolic link`),
    });
    await expect(run({ out: join(repo, ".glovebox", "runs", "deeper") })).rejects.toMatchObject({
      code: "path_confinement",
    });
    untouched();
  });

  test("that come later, in place of a run's folder: nothing is read, written or removed behind them", async () => {
    place();
    const { runId } = await run();
    renameSync(runs(), join(repo, "moved"));
    symlinkSync(elsewhere, runs());
    mkdirSync(join(elsewhere, runId));
    writeFileSync(join(elsewhere, runId, "run.json"), "{}");
    await expect(resumeRun({ runId })).rejects.toMatchObject({ code: "path_confinement" });
    await removeRun(runId);
    expect(readdirSync(elsewhere).sort()).toEqual([runId, "precious"].sort());
    expect(readdirSync(join(elsewhere, runId))).toEqual(["run.json"]);
    await expect(findRunDirectory(runId)).rejects.toMatchObject({ code: "not_found" });
  });

  test("that are no links but nonsense, in place of events.jsonl: the run is refused, and can be removed", async () => {
    place();
    const { runId } = await run();
    writeFileSync(join(runs(), runId, "events.jsonl"), "no event\n");
    await expect(resumeRun({ runId })).rejects.toMatchObject({ code: "tampered" });
    await removeRun(runId);
  });

  test.each(["events.jsonl", "report.json", "report.md", "changes.patch", "run.json", "owner.json", "stop", "nodes"])(
    "that come later, in place of %s: what they lead to stays as it is",
    async (name) => {
      place();
      const { runId } = await run();
      rmSync(join(runs(), runId, name), { recursive: true, force: true });
      symlinkSync(name === "nodes" ? elsewhere : join(elsewhere, "precious"), join(runs(), runId, name));
      await resumeRun({ runId }).catch((error: unknown) => {
        expect(error).toMatchObject({ code: "path_confinement" });
      });
      await stopRun(runId).catch(() => undefined);
      untouched();
      await removeRun(runId);
      untouched();
    },
  );

  test("a directory of runs that the user names may be reached by a link", async () => {
    place();
    const link = join(scratch.path, `link-${count}`);
    symlinkSync(elsewhere, link);
    const { runId } = await run({ out: link });
    expect(lstatSync(join(elsewhere, runId)).isDirectory()).toBe(true);
    expect(await resumeRun({ runId })).toMatchObject({ status: "failed" });
  });
});

test("a run and its apply execute nothing that the repository's settings, filters and hooks say", async () => {
  place();
  const trace = join(elsewhere, "trace");
  const payload = (name: string): string => `sh -c 'echo ${name} >> ${trace}; cat'`;
  for (const kind of ["smudge", "clean"]) git(repo, "config", `filter.evil.${kind}`, payload(kind));
  git(repo, "config", "diff.evil.textconv", payload("textconv"));
  git(repo, "config", "merge.evil.driver", payload("merge"));
  git(repo, "config", "core.fsmonitor", payload("fsmonitor"));
  for (const hook of ["post-checkout", "reference-transaction", "post-index-change", "pre-applypatch"]) {
    const path = join(repo, ".git", "hooks", hook);
    mkdirSync(join(repo, ".git", "hooks"), { recursive: true });
    writeFileSync(path, `#!/bin/sh\necho ${hook} >> ${trace}\n`, { mode: 0o755 });
  }
  writeFileSync(join(repo, ".git", "info", "attributes"), "* filter=evil diff=evil merge=evil\n");
  // Another time than the index knows makes git read the file again, and filter it.
  utimesSync(join(repo, "a.txt"), new Date(1_000_000), new Date(1_000_000));
  const change = { name: "change", nodes: [command("one", "echo changed >> a.txt; echo new > new.txt")] };
  const report = await run({ blueprint: change, runId: `executes-${count}` });
  expect(report.status).toBe("success");
  expect(report.changes?.files.map(({ path }) => path).sort()).toEqual(["a.txt", "new.txt"]);
  expect(existsSync(trace)).toBe(false);
  const applied = await applyRun(report.runId, repo);
  expect(applied.conflicts).toEqual([]);
  expect(readFileSync(join(repo, "a.txt"), "utf8")).toContain("changed");
  expect(existsSync(trace)).toBe(false);
});

test("a link in the place of a linked worktree's index is refused: apply would write through it", async () => {
  place();
  const linked = join(scratch.path, `linked-${count}`);
  git(repo, "worktree", "add", "--quiet", linked);
  const change = { name: "change", nodes: [command("one", "echo changed >> a.txt")] };
  const { runId } = await run({ repo: linked, blueprint: change, runId: `linked-${count}` });
  const index = join(repo, ".git", "worktrees", `linked-${count}`, "index");
  const victim = join(elsewhere, "index-of-another");
  renameSync(index, victim);
  symlinkSync(victim, index);
  const before = readFileSync(victim);
  await expect(applyRun(runId, linked)).rejects.toMatchObject({ code: "tampered" });
  await expect(run({ repo: linked, blueprint: change })).rejects.toMatchObject({ code: "tampered" });
  expect(readFileSync(victim).equals(before)).toBe(true);
});

test.each([".gitignore", ".gitattributes", "deep/.gitignore", "deep/nested/.git/HEAD"])(
  "a pipe at %s in the working tree ends the git that waits at it, by name",
  async (path) => {
    place();
    // Changed, so that git reads it, and its attributes.
    writeFileSync(join(repo, "a.txt"), "changed\n");
    mkdirSync(dirname(join(repo, path)), { recursive: true });
    if (path.endsWith("HEAD")) {
      git(join(repo, "deep/nested"), "init", "--quiet");
    } else writeFileSync(join(dirname(join(repo, path)), "untracked"), "");
    rmSync(join(repo, path), { force: true });
    execFileSync("mkfifo", [join(repo, path)]);
    await expect(run()).rejects.toMatchObject({ code: "tampered", message: expect.stringContaining(path) });
  },
);
