import { chownSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createLocalSandbox } from "../../../src/sandbox/backends/local.js";
import { readRefFile } from "../../../src/sandbox/git/repository/ref-file.js";
import { findRepository, resolveCommit } from "../../../src/sandbox/git/repository/repository.js";
import { createRepository, createScratch, git, type Scratch } from "../../support/scratch.js";

let scratch: Scratch;
beforeAll(() => {
  scratch = createScratch();
});
afterAll(() => scratch.remove());

const NAMES = ["HEAD", "refs/heads/main", "refs/heads/other", "refs/heads/deep/one", "refs/remotes/origin/main"];

test.each(["sha1", "sha256"])("what plain files say of a ref is what git says (%s)", async (format) => {
  const repo = createRepository(join(scratch.path, format), `--object-format=${format}`);
  const gitDir = join(repo, ".git");
  git(repo, "branch", "deep/one", "other");
  git(repo, "update-ref", "refs/remotes/origin/main", "other");
  const compare = async (): Promise<void> => {
    for (const name of NAMES)
      expect([name, await readRefFile(gitDir, name)]).toEqual([name, git(repo, "rev-parse", name)]);
  };
  await compare();
  git(repo, "pack-refs", "--all");
  await compare();
  // The file of its own is newer than the one that many share.
  git(repo, "commit", "-q", "--allow-empty", "-m", "third");
  git(repo, "branch", "-f", "deep/one", "HEAD");
  await compare();
  git(repo, "checkout", "-q", "--detach", "other");
  await compare();
});

test("where they do not say it, git is asked", async () => {
  const repo = createRepository(join(scratch.path, "unsure"));
  const gitDir = join(repo, ".git");
  const main = git(repo, "rev-parse", "main");
  git(repo, "symbolic-ref", "refs/heads/alias", "refs/heads/main");
  mkdirSync(join(gitDir, "refs", "heads", "folder"));
  for (const name of [
    "refs/heads/alias",
    "v1",
    "refs/heads/none",
    "refs/heads/folder",
    "refs/heads/../../config",
    main,
  ]) {
    expect([name, await readRefFile(gitDir, name)]).toEqual([name, undefined]);
  }
  expect(await resolveCommit(gitDir, "refs/heads/alias")).toBe(main);
  expect(await resolveCommit(gitDir, "v1")).toBe(git(repo, "rev-parse", "v1^{commit}"));
  expect(await resolveCommit(gitDir, "refs/heads/none")).toBeUndefined();
  git(repo, "checkout", "-q", "--orphan", "unborn");
  expect(await resolveCommit(gitDir, "HEAD")).toBeUndefined();
});

test("what is remembered of a repository is forgotten when it is another one, or configured otherwise", async () => {
  const repo = createRepository(join(scratch.path, "again"));
  const first = await findRepository(repo);
  expect(await findRepository(repo)).toEqual(first);
  const elsewhere = join(scratch.path, "elsewhere");
  mkdirSync(elsewhere);
  git(repo, "config", "core.worktree", elsewhere);
  // What a repository says about other places is not followed.
  expect((await findRepository(repo)).topLevel).toBe(repo);
  rmSync(repo, { recursive: true });
  await expect(findRepository(repo)).rejects.toMatchObject({ code: "not_found" });
  createRepository(repo, "--object-format=sha256");
  expect((await findRepository(repo)).objectFormat).toBe("sha256");
  rmSync(join(repo, ".git"), { recursive: true });
  await expect(findRepository(repo)).rejects.toMatchObject({ code: "invalid_argument" });
});

test.runIf(process.getuid?.() === 0)("one that somebody else owns since is not trusted any more", async () => {
  const repo = createRepository(join(scratch.path, "foreign"));
  await findRepository(repo);
  chownSync(join(repo, ".git"), 12_345, 12_345);
  chownSync(repo, 12_345, 12_345);
  await expect(findRepository(repo)).rejects.toMatchObject({ code: "permission_denied" });
});

test.each(["worktree", "overlay", "copy"] as const)(
  "a sandbox starts at what is checked out now: %s",
  async (workspace) => {
    const repo = createRepository(join(scratch.path, `now-${workspace}`));
    const start = async (): Promise<string | null> => {
      await using sandbox = await createLocalSandbox({ repo, workspace });
      return await sandbox.readFile("a.txt");
    };
    expect(await start()).toBe("one more\n");
    writeFileSync(join(repo, "a.txt"), "newer\n");
    git(repo, "commit", "-qam", "newer");
    expect(await start()).toBe("newer\n");
    git(repo, "checkout", "-q", "other");
    git(repo, "pack-refs", "--all");
    expect(await start()).toBe("one\n");
  },
);
