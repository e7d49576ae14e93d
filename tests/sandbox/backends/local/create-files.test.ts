import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { createLocalSandbox } from "../../../../src/sandbox/backends/local.js";
import { listSandboxes } from "../../../../src/sandbox.js";
import { createRepository, createScratch, git, type Scratch } from "../../../support/scratch.js";

let scratch: Scratch;
let place: string;
const before = process.env["TMPDIR"];
const home = process.env["HOME"];
beforeAll(() => {
  scratch = createScratch();
  place = join(scratch.path, "tmp");
  mkdirSync(place);
  process.env["TMPDIR"] = place;
  process.env["HOME"] = scratch.path;
});
afterAll(() => {
  if (before === undefined) delete process.env["TMPDIR"];
  else process.env["TMPDIR"] = before;
  process.env["HOME"] = home;
  scratch.remove();
});

/** A repository whose file is written by a program of the user's own, which has to be named. */
function createFiltered(name: string, smudge: string): { repo: string; gitFilters: string[] } {
  const repo = createRepository(join(scratch.path, name));
  writeFileSync(join(repo, ".gitattributes"), "a.txt filter=own\n");
  git(repo, "add", "--all");
  git(repo, "commit", "-qm", "filtered");
  const own = join(scratch.path, ".gitconfig");
  git(repo, "config", "--file", own, "filter.own.smudge", smudge);
  git(repo, "config", "--file", own, "filter.own.required", "true");
  return { repo, gitFilters: ["own"] };
}

test.each(["worktree", "copy"] as const)("a sandbox is there when all of its files are: %s", async (workspace) => {
  const filtered = createFiltered(`slow-${workspace}`, "sleep 1; tr a-z A-Z");
  await using sandbox = await createLocalSandbox({ ...filtered, workspace });
  expect(await sandbox.readFile("a.txt")).toBe("ONE MORE\n");
  expect((await sandbox.exec({ argv: ["git", "ls-files", "--stage", "sub/b.txt"] })).stdout).toContain("sub/b.txt");
});

test.each(["worktree", "copy"] as const)("and not at all when one cannot be written: %s", async (workspace) => {
  const { repo, gitFilters } = createFiltered(`broken-${workspace}`, "false");
  await expect(createLocalSandbox({ repo, gitFilters, workspace })).rejects.toMatchObject({
    message: expect.stringContaining("smudge filter own failed"),
  });
  expect(await listSandboxes()).toEqual([]);
  expect(git(repo, "for-each-ref", "--format=%(refname:short)", "refs/heads").split("\n")).toEqual(["main", "other"]);
  expect(git(repo, "worktree", "list").split("\n")).toHaveLength(1);
  expect(readdirSync(place)).toEqual([]);
});

test("one that is given up while its files are written leaves nothing", async () => {
  const marker = join(scratch.path, "written");
  const { repo, gitFilters } = createFiltered("aborted", `sleep 10; touch '${marker}'; cat`);
  const signal = AbortSignal.timeout(300);
  await expect(createLocalSandbox({ repo, gitFilters, signal })).rejects.toMatchObject({ code: "aborted" });
  expect(existsSync(marker)).toBe(false);
  // The call returns on time; what it has not undone by then, it undoes after that.
  await vi.waitFor(async () => expect(await listSandboxes()).toEqual([]), { timeout: 30_000, interval: 50 });
  expect(git(repo, "for-each-ref", "--format=%(refname:short)", "refs/heads").split("\n")).toEqual(["main", "other"]);
  expect(readdirSync(place)).toEqual([]);
});
