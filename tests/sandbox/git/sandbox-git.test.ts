import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createRecord } from "../../../src/ledger/records.js";
import { INSIDE_GIT } from "../../../src/sandbox/git/repository/inside-paths.js";
import { findRepository, type RepositoryTrust } from "../../../src/sandbox/git/repository/repository.js";
import {
  borrowingGitBinds,
  borrowingGitDir,
  giveIndex,
  writeBorrowingGit,
} from "../../../src/sandbox/git/sandbox-git/borrowing-git.js";
import { addWorktree, type Worktree } from "../../../src/sandbox/git/worktree/worktree.js";
import type { JailBind } from "../../../src/sandbox/jail/jail.js";
import { runInJail } from "../../support/local/jail.js";
import { createRepository, createScratch, git, type Scratch } from "../../support/scratch.js";

let scratch: Scratch;
beforeEach(() => {
  scratch = createScratch();
});
afterEach(() => scratch.remove());

interface Inside {
  worktree: Worktree;
  binds: JailBind[];
  sh(script: string): Promise<string>;
}

async function open(repo: string, name = "harness-one", trust: RepositoryTrust = {}): Promise<Inside> {
  const path = join(scratch.path, name);
  await createRecord({ id: "one", backend: "local", workDir: path });
  const repository = await findRepository(repo, trust);
  const worktree = await addWorktree({ repository, branch: "work/one", path, record: "one" });
  const dir = join(scratch.path, "private");
  await writeBorrowingGit({ repository, branch: "work/one", baseSha: worktree.baseSha, dir });
  await giveIndex(dir, join(worktree.gitDir, "index"));
  const git = { source: borrowingGitDir(dir), target: INSIDE_GIT, writable: true, owned: true };
  const binds = [git, ...borrowingGitBinds(repository, dir, path)];
  const tree = { source: path, target: path, writable: true };
  const sh = async (script: string): Promise<string> => {
    const { exitCode, stdout, stderr } = await runInJail(["sh", "-ec", script], { binds: [tree, ...binds], cwd: path });
    if (exitCode !== 0 || stderr !== "") throw new Error(`exit ${exitCode}: ${stderr}`);
    return Buffer.from(stdout).toString().trimEnd();
  };
  return { worktree, binds, sh };
}

test("inside, status is clean, history, branches and tags are there, and commits work", async () => {
  const repo = createRepository(join(scratch.path, "repo"));
  const { worktree, sh } = await open(repo);
  expect(await sh("git status --porcelain=v2 --branch")).toBe(
    `# branch.oid ${worktree.baseSha}\n# branch.head work/one`,
  );
  expect(await sh("git log --format=%s")).toBe("second\nfirst");
  expect(await sh("git branch --format='%(refname:short)'; git tag; git describe other")).toBe(
    "main\nother\nwork/one\nv1\nv1",
  );
  expect(await sh("git fsck --strict --no-progress 2>&1")).toBe("");
  const commit = await sh("echo new > new.txt; git add -A; git commit -qm inside; git log -1 --format='%an %ae %s'");
  expect(commit).toBe("Glovebox glovebox@localhost inside");
  expect(await sh("git switch -qc more; git stash list; git log --oneline | wc -l")).toBe("3");
});

test("what happens inside leaves the source as it was", async () => {
  const repo = createRepository(join(scratch.path, "repo"));
  const { sh } = await open(repo);
  const state = (): unknown => [
    git(repo, "for-each-ref"),
    readFileSync(join(repo, ".git", "config"), "utf8"),
    readdirSync(join(repo, ".git", "hooks")),
    git(repo, "count-objects", "-v"),
    git(repo, "fsck", "--strict", "--no-progress"),
  ];
  const before = state();
  await sh(`
    echo new > new.txt; git add -A; git commit -qm inside; git branch -f main HEAD; git tag t
    git config core.fsmonitor 'touch /tmp/x'; printf '#!/bin/sh\\n' > /glovebox/git/hooks.sh
    ! rm -rf /glovebox/objects/* 2>/dev/null
    ! rm .git 2>/dev/null
    ! mv .git .old 2>/dev/null
    ! sh -c 'echo gitdir: /tmp > .git' 2>/dev/null`);
  expect(state()).toEqual(before);
});

test("the user's configuration, which may hold tokens, is nowhere inside", async () => {
  const repo = createRepository(join(scratch.path, "repo"));
  git(repo, "remote", "add", "origin", "https://user:canary-token@example.invalid/x.git");
  git(repo, "config", "http.extraHeader", "Authorization: canary-token");
  const { binds, sh } = await open(repo);
  expect(binds.some((bind) => repo.startsWith(bind.source) || bind.source === join(repo, ".git"))).toBe(false);
  expect(await sh("grep -rla canary-token /glovebox . || echo none")).toBe("none");
  expect(await sh(`test -e ${repo} && echo visible || echo absent`)).toBe("absent");
});

test("how files are written follows the user's settings", async () => {
  const repo = createRepository(join(scratch.path, "repo"));
  git(repo, "config", "core.autocrlf", "true");
  const { sh } = await open(repo);
  expect(await sh("grep -c $(printf '\\r') a.txt")).toBe("1");
  expect(await sh("touch a.txt; git status --porcelain")).toBe("");
});

test("a repository with sha256 objects", async () => {
  const { sh, worktree } = await open(createRepository(join(scratch.path, "repo"), "--object-format=sha256"));
  expect(worktree.baseSha).toHaveLength(64);
  expect(await sh("git status --porcelain; echo x > x; git add x; git commit -qm x; git log --oneline | wc -l")).toBe(
    "3",
  );
});

test("a shallow clone", async () => {
  const repo = createRepository(join(scratch.path, "repo"));
  git(scratch.path, "clone", "--quiet", "--depth=1", `file://${repo}`, "shallow");
  const { sh } = await open(join(scratch.path, "shallow"));
  expect(await sh("git log --format=%s; git fsck --no-progress 2>&1")).toBe("second");
});

test("a repository that borrows its objects, also at second hand", async () => {
  const repo = createRepository(join(scratch.path, "repo"));
  git(scratch.path, "clone", "--quiet", "--shared", repo, "second");
  git(scratch.path, "clone", "--quiet", "--shared", "second", "third");
  const gitAlternates = ["repo", "second"].map((name) => join(scratch.path, name, ".git", "objects"));
  const { sh } = await open(join(scratch.path, "third"), "harness-one", { gitAlternates });
  expect(await sh("git log --format=%s")).toBe("second\nfirst");
});

test("an object store that cannot be shown inside is refused", async () => {
  const repo = createRepository(join(scratch.path, "repo"));
  mkdirSync(join(repo, ".git", "objects", "info"), { recursive: true });
  writeFileSync(join(repo, ".git", "objects", "info", "alternates"), "../../../elsewhere\n");
  await expect(open(repo)).rejects.toMatchObject({ code: "unsupported", hint: expect.stringContaining("repack") });
});

test("a path with quotes and blanks is no trouble", async () => {
  const repo = createRepository(join(scratch.path, 'it\'s "a" \\ repo; #x'));
  const name = 'harness "one" \\ #;';
  const { sh } = await open(repo, name);
  expect(await sh("git rev-parse --show-toplevel")).toBe(join(scratch.path, name));
  expect(await sh("git status --porcelain")).toBe("");
});
