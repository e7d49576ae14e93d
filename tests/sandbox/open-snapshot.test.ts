import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readSnapshotRecord, writeSnapshotRecord } from "../../src/ledger.js";
import type { Sandbox } from "../../src/sandbox/types.js";
import { listSandboxes, listSnapshots, type OpenOptions, openSandbox } from "../../src/sandbox.js";
import { createRepository, createScratch, git, type Scratch } from "../support/scratch.js";

let scratch: Scratch;
let repo: string;
const opened: Sandbox[] = [];
beforeEach(() => {
  scratch = createScratch();
  repo = createRepository(join(scratch.path, "repo"));
});
afterEach(async () => {
  for (const sandbox of opened.splice(0)) await sandbox.teardown();
  scratch.remove();
});

async function open(opts: OpenOptions): Promise<Sandbox> {
  const sandbox = await openSandbox(opts);
  opened.push(sandbox);
  return sandbox;
}

/** A snapshot of a sandbox that is gone. */
async function saved(opts: OpenOptions, script: string): Promise<{ id: string; base: string }> {
  const sandbox = await open({ backend: "local", ...opts });
  const base = opts.repo === undefined ? "" : git(opts.repo, "rev-parse", "HEAD");
  expect(await sandbox.shell(script)).toMatchObject({ exitCode: 0, stderr: "" });
  const id = await sandbox.snapshot({ name: "saved" });
  await sandbox.teardown();
  return { id, base };
}

const left = async (): Promise<unknown> => ({
  sandboxes: (await listSandboxes()).map(({ id }) => id),
  records: readdirSync(join(scratch.home, "sandboxes")),
  worktrees: git(repo, "worktree", "list").split("\n").length,
  branches: git(repo, "branch", "--list", "glovebox/*"),
});
const NOTHING = { sandboxes: [], records: [], worktrees: 1, branches: "" };

describe("of a repository", () => {
  test("starts where the sandbox of the snapshot started, with its commits, wherever the repository is by now", async () => {
    await saved({ repo }, "echo new > new && git add new && git commit -qm inside && echo more > more");
    git(repo, "commit", "--quiet", "--allow-empty", "-m", "later");
    for (const workspace of ["worktree", "overlay", "copy"] as const) {
      const sandbox = await open({ snapshot: "saved", workspace });
      expect((await sandbox.changes()).files.map(({ path }) => path).sort()).toEqual(["more", "new"]);
      expect((await sandbox.shell("git log -1 --format=%s && git symbolic-ref --short HEAD")).stdout).toBe(
        `inside\nglovebox/${sandbox.id}\n`,
      );
      await sandbox.teardown();
    }
    expect(await left()).toEqual(NOTHING);
  });

  test("takes a new branch by name; one that exists is in the way, and nothing is left", async () => {
    await saved({ repo }, "echo new > new");
    const sandbox = await open({ snapshot: "saved", branch: "fresh" });
    expect((await sandbox.shell("git symbolic-ref --short HEAD")).stdout).toBe("fresh\n");
    await sandbox.teardown();
    git(repo, "branch", "taken");
    await expect(open({ snapshot: "saved", branch: "taken" })).rejects.toMatchObject({ code: "conflict" });
    expect(await left()).toEqual(NOTHING);
  });

  test("is refused with another repository or backend, and starts at HEAD where the record does not say", async () => {
    const { id } = await saved({ repo }, "echo new > new");
    const other = createRepository(join(scratch.path, "other"));
    for (const wrong of [{ repo: other }, { repo: "acme/widgets" }, { backend: "docker", repo }]) {
      await expect(open({ snapshot: id, ...wrong })).rejects.toMatchObject({
        code: "conflict",
        hint: expect.stringMatching(/^omit (repo|backend)$/) as string,
      });
    }
    const record = await readSnapshotRecord(id);
    const { base: _, ...details } = record.details as Record<string, unknown>;
    await writeSnapshotRecord({ ...record, details });
    const sandbox = await open({ backend: "local", snapshot: id, repo: join(repo, "..", "repo") });
    expect((await sandbox.changes()).files).toEqual([{ path: "new", status: "added" }]);
  });

  test("that is gone from the repository leaves nothing, nor does a deadline", async () => {
    const { id } = await saved({ repo }, "echo new > new");
    await expect(open({ snapshot: id, operationTimeout: 1 })).rejects.toMatchObject({ code: "unavailable" });
    await expect.poll(left).toEqual(NOTHING);
    git(repo, "update-ref", "-d", (await readSnapshotRecord(id)).ref ?? "");
    await expect(open({ snapshot: id, keep: true })).rejects.toMatchObject({ code: "not_found" });
    expect(await left()).toEqual(NOTHING);
  });
});

describe("where it works", () => {
  test("is where the sandbox of the snapshot worked, chosen or not, so that absolute paths go on working", async () => {
    for (const own of [{ workDir: "/srv/app" }, {}]) {
      const first = await open({ backend: "local", repo, ...own });
      await first.shell("printf '#!/bin/sh\\necho works\\n' > tool; chmod +x tool; ln -s \"$PWD/tool\" link");
      const id = await first.snapshot();
      await first.teardown();
      for (const workspace of ["worktree", "overlay", "copy"] as const) {
        const sandbox = await open({ snapshot: id, workspace });
        expect([sandbox.workDir, (await sandbox.exec("./link")).stdout]).toEqual([first.workDir, "works\n"]);
        await sandbox.teardown();
      }
    }
  });

  test("is another place if the call says so, or without isolation", async () => {
    const { id } = await saved({ workDir: "/srv/app" }, "echo one > file");
    expect((await open({ snapshot: id, workDir: "/other" })).workDir).toBe("/other");
    const bare = await open({ snapshot: id, isolation: "none" });
    expect([bare.workDir, await bare.readFile("file")]).toEqual([bare.hostDir, "one\n"]);
  });
});

describe("without a repository", () => {
  test("a snapshot of a directory of the user's opens as a directory of its own", async () => {
    const baseDir = join(scratch.path, "base");
    mkdirSync(baseDir);
    writeFileSync(join(baseDir, "file"), "user's");
    await saved({ baseDir }, "mkdir sub && echo made > sub/made");
    const sandbox = await open({ snapshot: "saved" });
    expect(sandbox.workDir).not.toBe(baseDir);
    expect(await sandbox.readFile("sub/made")).toBe("made\n");
    await sandbox.writeFile("file", "other");
    expect(readFileSync(join(baseDir, "file"), "utf8")).toBe("user's");
  });

  test("it can be kept, named only once, and takes no option of a repository", async () => {
    const { id } = await saved({}, "echo one > file");
    expect(await listSnapshots({ name: "saved" })).toMatchObject([{ id, name: "saved" }]);
    expect(await listSnapshots({ name: "other" })).toEqual([]);
    await expect(open({ snapshot: "saved", branch: "b" })).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("branch") as string,
    });
    const kept = await open({ snapshot: "saved", keep: true });
    await kept.teardown();
    const again = await open({ id: kept.id, keep: false });
    expect(await again.readFile("file")).toBe("one\n");
  });
});
