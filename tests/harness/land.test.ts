import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type BlueprintSpec, landRun, runHarness } from "../../src/harness.js";
import { deleteSnapshot, listSnapshots } from "../../src/sandbox.js";
import { createHarnessBench, type HarnessBench } from "../support/harness/bench.js";
import { createRepository, git } from "../support/scratch.js";

let bench: HarnessBench;
beforeAll(async () => {
  bench = await createHarnessBench();
});
afterAll(async () => {
  await bench[Symbol.asyncDispose]();
});

const SCRIPT = "echo theirs > a.txt; echo new > new.txt; head -c 300 /dev/urandom > blob";
const edit = (shell: string): BlueprintSpec => ({ name: "edit", nodes: [{ id: "e", kind: "command", shell }] });

async function ranOn(name: string, shell = SCRIPT): Promise<{ repo: string; runId: string }> {
  const repo = createRepository(join(bench.scratch.path, name));
  const { runId } = await runHarness({ repo, intent: "change it", sandboxType: "local", blueprint: edit(shell) });
  return { repo, runId };
}

describe("the work of a run as a local branch", () => {
  test("is one commit on what the run started from, and touches no file, no index, no other ref", async () => {
    const { repo, runId } = await ranOn("new");
    const base = git(repo, "rev-parse", "HEAD");
    writeFileSync(join(repo, "a.txt"), "my own edit\n");
    const [refs, status] = [git(repo, "for-each-ref"), git(repo, "status", "--porcelain")];
    const landed = await landRun(runId, { branch: "fix/it" });
    expect(landed.files).toEqual(["a.txt", "blob", "new.txt"]);
    expect(git(repo, "rev-parse", "fix/it", "fix/it^")).toBe(`${landed.commit}\n${base}`);
    expect(git(repo, "show", "fix/it:a.txt")).toBe("theirs");
    expect(git(repo, "cat-file", "-s", "fix/it:blob")).toBe("300");
    expect(git(repo, "log", "-1", "--format=%s", "fix/it")).toBe("[harness] change it");
    expect(git(repo, "status", "--porcelain")).toBe(status);
    const others = git(repo, "for-each-ref")
      .split("\n")
      .filter((line) => !line.endsWith("refs/heads/fix/it"));
    expect(others.join("\n")).toBe(refs);
    expect((await landRun(runId, { branch: "fix/again" })).commit).toBe(landed.commit);
  });

  test("comes from the patch where the snapshot is gone, and is the tree of the report all the same", async () => {
    const { repo, runId } = await ranOn(
      "patch",
      "echo theirs > a.txt; mkdir d; echo new > d/new.txt; chmod +x d/new.txt",
    );
    const tree = git(repo, "rev-parse", `${(await landRun(runId, { branch: "before" })).commit}^{tree}`);
    for (const { id } of await listSnapshots()) await deleteSnapshot(id);
    git(repo, "branch", "-D", "before");
    git(repo, "reflog", "expire", "--expire=now", "--all");
    git(repo, "gc", "--quiet", "--prune=now");
    const { commit } = await landRun(runId, { branch: "after" });
    expect(git(repo, "rev-parse", `${commit}^{tree}`)).toBe(tree);
  });

  test("moves no branch that exists, except from the commit that is expected", async () => {
    const { repo, runId } = await ranOn("moved");
    const base = git(repo, "rev-parse", "HEAD");
    git(repo, "branch", "taken");
    await expect(landRun(runId, { branch: "taken" })).rejects.toMatchObject({
      code: "conflict",
      hint: expect.stringContaining(`--expect ${base.slice(0, 12)}`),
    });
    const tree = git(repo, "rev-parse", "HEAD^{tree}");
    const other = git(repo, "commit-tree", tree, "-p", base, "-m", "other");
    await expect(landRun(runId, { branch: "taken", expected: other })).rejects.toMatchObject({ code: "conflict" });
    await expect(landRun(runId, { branch: "absent", expected: base })).rejects.toMatchObject({ code: "conflict" });
    await expect(landRun(runId, { branch: "taken", expected: "nowhere" })).rejects.toMatchObject({
      code: "invalid_argument",
    });
    expect(git(repo, "rev-parse", "taken")).toBe(base);
    const { commit } = await landRun(runId, { branch: "taken", expected: base.slice(0, 12) });
    expect(git(repo, "rev-parse", "taken")).toBe(commit);
  });

  test("is never a branch that is checked out, in whatever worktree", async () => {
    const { repo, runId } = await ranOn("checked-out");
    const base = git(repo, "rev-parse", "HEAD");
    const own = git(repo, "branch", "--show-current");
    git(repo, "worktree", "add", "--quiet", "-b", "elsewhere", join(bench.scratch.path, "elsewhere"));
    for (const branch of [own, "elsewhere"]) {
      await expect(landRun(runId, { branch, expected: base })).rejects.toMatchObject({
        code: "conflict",
        message: expect.stringContaining("is checked out at"),
      });
      expect(git(repo, "rev-parse", branch)).toBe(base);
    }
    await expect(landRun(runId, { branch: "../x" })).rejects.toMatchObject({ code: "invalid_argument" });
  });
});
