import { execFileSync } from "node:child_process";
import { appendFileSync, chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createLocalSandbox } from "../../../src/sandbox/backends/local.js";
import { explainGitFailure } from "../../../src/sandbox/git/host/explain-failure.js";
import { gitError, runHostGit } from "../../../src/sandbox/git/host/host-git.js";
import { createRepository, createScratch, git, type Scratch } from "../../support/scratch.js";

let scratch: Scratch;
beforeAll(() => {
  scratch = createScratch();
});
afterAll(() => scratch.remove());

const inGit = (repo: string, ...path: string[]): string => join(repo, ".git", ...path);
const objectOf = (repo: string, name: string): string => {
  const sha = git(repo, "rev-parse", name);
  return inGit(repo, "objects", sha.slice(0, 2), sha.slice(2));
};
const overwrite = (path: string, content: string | Buffer): void => {
  chmodSync(path, 0o644);
  writeFileSync(path, content);
};
const eachPacked = (repo: string, ending: string, change: (path: string) => void): void => {
  git(repo, "gc", "--quiet");
  const directory = inGit(repo, "objects", "pack");
  for (const name of readdirSync(directory)) if (name.endsWith(ending)) change(join(directory, name));
};
/** Makes the branch `work` a commit with one file of this mode, name and content. */
const commitOf = (repo: string, mode: string, name: string, content: string, literally = false): void => {
  const run = (args: string[], input: string | Buffer): string =>
    execFileSync("git", args, { cwd: repo, input }).toString().trim();
  const blob = run(["hash-object", "-w", "--stdin"], content);
  const raw = Buffer.concat([Buffer.from(`${mode} ${name}\0`), Buffer.from(blob, "hex")]);
  const tree = literally
    ? run(["hash-object", "-t", "tree", "-w", "--literally", "--stdin"], raw)
    : run(["mktree"], `${mode} blob ${blob}\t${name}\n`);
  git(repo, "update-ref", "refs/heads/work", git(repo, "commit-tree", "-m", "x", tree));
};

const DAMAGED = "git fsck";
const CASES: [what: string, damage: (repo: string) => void, code: string, hint: string][] = [
  [
    "a config that is no config",
    (r) => appendFileSync(inGit(r, "config"), "\n[broken\n"),
    "invalid_argument",
    "config",
  ],
  [
    "a value of no kind",
    (r) => appendFileSync(inGit(r, "config"), "\n[core]\n\tbare = perhaps\n"),
    "invalid_argument",
    "config",
  ],
  [
    "a format of the future",
    (r) => git(r, "config", "core.repositoryformatversion", "99"),
    "unsupported",
    "Update git",
  ],
  [
    "an unknown extension",
    (r) =>
      appendFileSync(inGit(r, "config"), "\n[core]\n\trepositoryformatversion = 1\n[extensions]\n\tfancy = true\n"),
    "unsupported",
    "Update git",
  ],
  ["a missing commit", (r) => rmSync(objectOf(r, "HEAD")), "invalid_argument", DAMAGED],
  ["a missing tree", (r) => rmSync(objectOf(r, "HEAD^{tree}")), "invalid_argument", DAMAGED],
  ["a missing file", (r) => rmSync(objectOf(r, "HEAD:a.txt")), "invalid_argument", DAMAGED],
  ["a commit of garbage", (r) => overwrite(objectOf(r, "HEAD"), "garbage"), "invalid_argument", DAMAGED],
  ["a tree of garbage", (r) => overwrite(objectOf(r, "HEAD^{tree}"), "x"), "invalid_argument", DAMAGED],
  ["a file of garbage", (r) => overwrite(objectOf(r, "HEAD:a.txt"), "garbage"), "invalid_argument", DAMAGED],
  ["an empty object", (r) => overwrite(objectOf(r, "HEAD:a.txt"), ""), "invalid_argument", DAMAGED],
  [
    "a pack that was cut off",
    (r) => eachPacked(r, ".pack", (path) => overwrite(path, readFileSync(path).subarray(0, 60))),
    "invalid_argument",
    DAMAGED,
  ],
  [
    "an index of a pack that is none",
    (r) => eachPacked(r, ".idx", (path) => overwrite(path, "x")),
    "invalid_argument",
    DAMAGED,
  ],
  [
    "packed refs of garbage",
    (r) => writeFileSync(inGit(r, "packed-refs"), "what is this\n"),
    "invalid_argument",
    DAMAGED,
  ],
  [
    "a branch that is no commit",
    (r) => writeFileSync(inGit(r, "refs/heads/work"), `${git(r, "rev-parse", "HEAD:a.txt")}\n`),
    "invalid_argument",
    DAMAGED,
  ],
  [
    "a branch to nowhere",
    (r) => writeFileSync(inGit(r, "refs/heads/work"), `${"1".repeat(40)}\n`),
    "invalid_argument",
    DAMAGED,
  ],
  [
    "a .git of garbage",
    (r) => {
      rmSync(inGit(r), { recursive: true });
      writeFileSync(inGit(r), "garbage\n");
    },
    "invalid_argument",
    "leads nowhere",
  ],
  [
    "a HEAD of garbage",
    (r) => writeFileSync(inGit(r, "HEAD"), "garbage\n"),
    "invalid_argument",
    "Its .git lacks a valid HEAD",
  ],
  [
    "no objects",
    (r) => rmSync(inGit(r, "objects"), { recursive: true }),
    "invalid_argument",
    "Its .git lacks a valid HEAD",
  ],
  ["a path that git refuses", (r) => commitOf(r, "100644", ".git", "x", true), "invalid_argument", "refuses to write"],
  ["a name that is too long", (r) => commitOf(r, "100644", "x".repeat(300), "x"), "invalid_path", "this file system"],
  [
    "a path that is too long, though none of its names is",
    (r) => {
      commitOf(r, "100644", "file", "x");
      let tree = git(r, "rev-parse", "work^{tree}");
      for (let depth = 0; depth < 30; depth++) {
        const input = `040000 tree ${tree}\t${"d".repeat(200)}\n`;
        tree = execFileSync("git", ["mktree"], { cwd: r, input }).toString().trim();
      }
      git(r, "update-ref", "refs/heads/work", git(r, "commit-tree", "-m", "x", tree));
    },
    "invalid_path",
    "this file system",
  ],
  [
    "a link that is too long",
    (r) => commitOf(r, "120000", "link", "y".repeat(5000)),
    "invalid_path",
    "this file system",
  ],
  [
    "a partial clone",
    (r) => {
      const partial = "\n[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = origin\n";
      appendFileSync(inGit(r, "config"), `${partial}[remote "origin"]\n\turl = ext::false\n\tpromisor = true\n`);
      rmSync(objectOf(r, "HEAD:a.txt"));
    },
    "unsupported",
    "partial clone",
  ],
];

describe.each(["worktree", "copy", "overlay"] as const)("a repository that cannot be opened as a %s", (workspace) => {
  test.each(CASES)("%s", async (what, damage, code, hint) => {
    const repo = createRepository(join(scratch.path, `${workspace}-${what}`.replaceAll(" ", "-")));
    damage(repo);
    await expect(createLocalSandbox({ repo, workspace, branch: "work" })).rejects.toMatchObject({
      code,
      hint: expect.stringContaining(hint),
    });
  });
});

describe("a worktree in whose way something is", () => {
  test.each<[string, (repo: string) => void, string, string]>([
    [
      "a branch of garbage",
      (r) => writeFileSync(inGit(r, "refs/heads/work"), "garbage\n"),
      "invalid_argument",
      "refs/heads/work",
    ],
    ["a lock on the branch", (r) => writeFileSync(inGit(r, "refs/heads/work.lock"), ""), "conflict", "lock file"],
    [
      "a file for a directory",
      (r) => {
        rmSync(inGit(r, "logs"), { recursive: true });
        writeFileSync(inGit(r, "logs"), "");
      },
      "invalid_path",
      "in the place of a directory",
    ],
  ])("%s", async (what, damage, code, hint) => {
    const repo = createRepository(join(scratch.path, `way-${what}`.replaceAll(" ", "-")));
    damage(repo);
    const opened = createLocalSandbox({ repo, branch: "work" });
    await expect(opened).rejects.toMatchObject({ code, hint: expect.stringContaining(hint) });
  });
});

test("git speaks English, whatever is set: its words are read", async () => {
  const { PATH } = process.env;
  const program = join(scratch.path, "git");
  writeFileSync(program, '#!/bin/sh\nprintf %s "$LC_ALL"\n', { mode: 0o755 });
  try {
    process.env["PATH"] = scratch.path;
    const answer = await runHostGit(["status"], { cwd: "/usr", env: { LC_ALL: "de_DE.UTF-8" } });
    expect(answer.stdout).toBe("C");
  } finally {
    process.env["PATH"] = PATH;
  }
});

test.each([
  ["fatal: unable to read x: Input/output error", "unavailable"],
  ["fatal: unable to create thread: Resource temporarily unavailable", "unavailable"],
  ["fatal: Out of memory, malloc failed\nended by SIGKILL", "unavailable"],
  ['error: open("x"): Too many open files', "unavailable"],
  ["fatal: bad revision 'x'", "not_found"],
  ["error: external filter 'lfs' failed 1\nfatal: a: smudge filter lfs failed", "missing_dependency"],
  ["fatal: something that nobody knows", "internal"],
])("%j is %s", (stderr, code) => {
  const error = explainGitFailure(gitError(["x"], { exitCode: 128, stdout: "", stderr }));
  expect(error).toMatchObject({ code, message: expect.stringContaining("git x failed") });
});
