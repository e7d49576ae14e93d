import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createRecord, readRecord } from "../../../src/ledger/records.js";
import { removeResource } from "../../../src/sandbox/backends/local/cleanup.js";
import { findRepository } from "../../../src/sandbox/git/repository/repository.js";
import { removeBranch, removeWorktree } from "../../../src/sandbox/git/worktree/remove-worktree.js";
import { addWorktree, type Worktree } from "../../../src/sandbox/git/worktree/worktree.js";
import { assertBranchName } from "../../../src/util/git/branch-name.js";
import { compileSources, startChild } from "../../support/run/compiled.js";
import { createRepository, createScratch, git, type Scratch } from "../../support/scratch.js";

let scratch: Scratch;
let repo: string;
beforeEach(() => {
  scratch = createScratch();
  repo = createRepository(join(scratch.path, "repo"));
});
afterEach(() => scratch.remove());

async function add(name: string, branch = `work/${name}`): Promise<Worktree> {
  const path = join(scratch.path, `harness-${name}`);
  await createRecord({ id: name, backend: "local", workDir: path });
  return await addWorktree({ repository: await findRepository(repo), branch, path, record: name });
}

async function removeAll(name: string): Promise<void> {
  for (const resource of [...((await readRecord(name))?.resources ?? [])].reverse()) await removeResource(resource);
}

const state = (): string =>
  `${git(repo, "worktree", "list")}\n${git(repo, "for-each-ref")}\n${git(repo, "status", "-sb")}`;

describe("findRepository", () => {
  test("gives the real paths, also through a link and from a worktree", async () => {
    const tree = await add("one");
    symlinkSync(repo, join(scratch.path, "link"));
    const expected = { gitDir: join(repo, ".git"), objects: join(repo, ".git", "objects"), objectFormat: "sha1" };
    expect(await findRepository(join(scratch.path, "link"))).toEqual({ ...expected, topLevel: repo });
    expect(await findRepository(tree.path)).toEqual({ ...expected, topLevel: tree.path, ownGitDir: tree.gitDir });
  });

  test("a bare one has no top level", async () => {
    git(scratch.path, "clone", "--quiet", "--bare", repo, "bare.git");
    const bare = join(scratch.path, "bare.git");
    expect(await findRepository(bare)).toEqual({ gitDir: bare, objects: join(bare, "objects"), objectFormat: "sha1" });
  });

  test("a missing path, a file, a plain directory and one inside a repository are refused by name", async () => {
    const refusal = (path: string, code: string) =>
      expect(findRepository(path)).rejects.toMatchObject({ code, message: expect.stringContaining(path) });
    await refusal(join(scratch.path, "missing"), "not_found");
    await refusal(join(repo, "a.txt"), "invalid_argument");
    mkdirSync(join(scratch.path, "plain"));
    await refusal(join(scratch.path, "plain"), "invalid_argument");
    await refusal(join(repo, "sub"), "invalid_argument");
    await expect(findRepository(join(repo, "sub"))).rejects.toMatchObject({ hint: expect.stringContaining(repo) });
  });

  test("a git that lies in the current directory or in node_modules is not run", async () => {
    const canary = join(scratch.path, "canary");
    const planted = ["bin", "node_modules/.bin"].map((name) => join(scratch.path, name));
    for (const directory of planted) {
      mkdirSync(directory, { recursive: true });
      writeFileSync(join(directory, "git"), `#!/bin/sh\necho ran >> ${canary}\n`, { mode: 0o755 });
    }
    const path = process.env["PATH"];
    const cwd = process.cwd();
    process.chdir(scratch.path);
    process.env["PATH"] = [...planted, "bin", "", path].join(":");
    try {
      expect((await findRepository(repo)).topLevel).toBe(repo);
    } finally {
      process.chdir(cwd);
      process.env["PATH"] = path;
    }
    expect(existsSync(canary)).toBe(false);
  });

  test("the caller's GIT_ variables do not count", async () => {
    process.env["GIT_DIR"] = "/nonexistent";
    try {
      expect((await findRepository(repo)).topLevel).toBe(repo);
    } finally {
      delete process.env["GIT_DIR"];
    }
  });
});

describe("addWorktree", () => {
  test("a new branch starts at HEAD, registered, clean, with every file", async () => {
    const tree = await add("one");
    expect(tree).toMatchObject({ branch: "work/one", baseSha: git(repo, "rev-parse", "HEAD") });
    expect(tree.gitDir).toBe(join(repo, ".git", "worktrees", "harness-one"));
    expect(git(repo, "worktree", "list")).toContain(`${tree.path} `);
    expect(git(tree.path, "status", "--porcelain=v2", "--branch")).toContain("branch.head work/one");
    expect(git(tree.path, "status", "--porcelain")).toBe("");
    expect(readFileSync(join(tree.path, "sub", "b.txt"), "utf8")).toBe("two\n");
  });

  test("an existing branch is checked out, not ours to delete", async () => {
    const tree = await add("one", "other");
    expect(tree.baseSha).toBe(git(repo, "rev-parse", "other"));
    expect((await readRecord("one"))?.resources.map((resource) => resource.kind)).toEqual(["worktree"]);
  });

  test("the ledger knows the branch and the worktree", async () => {
    const tree = await add("one");
    expect((await readRecord("one"))?.resources).toEqual([
      {
        kind: "branch",
        repo: join(repo, ".git"),
        name: "work/one",
        sha: tree.baseSha,
        mark: "glovebox: created for one",
      },
      { kind: "worktree", repo: join(repo, ".git"), path: tree.path, name: "harness-one" },
    ]);
  });

  test("no hook and no fsmonitor of the repository runs", async () => {
    const canary = join(scratch.path, "canary");
    for (const hook of ["post-checkout", "reference-transaction", "post-index-change"]) {
      writeFileSync(join(repo, ".git", "hooks", hook), `#!/bin/sh\ntouch ${canary}\n`, { mode: 0o755 });
    }
    git(repo, "config", "core.fsmonitor", `touch ${canary}; false`);
    await add("one");
    expect(existsSync(canary)).toBe(false);
  });

  test("a sparse repository still gives every file", async () => {
    git(repo, "sparse-checkout", "set", "--no-cone", "/a.txt");
    const tree = await add("one");
    expect(readdirSync(tree.path).sort()).toEqual([".git", ".gitignore", "a.txt", "sub"]);
  });

  test("works on a bare repository and without a configured user", async () => {
    git(scratch.path, "clone", "--quiet", "--bare", repo, "bare.git");
    repo = join(scratch.path, "bare.git");
    expect(readdirSync((await add("one")).path)).toContain("a.txt");
  });

  test.each([
    ["the branch is checked out", "main", "conflict"],
    ["the branch lies below another", "other/below", "conflict"],
    ["the branch is an option", "--upload-pack=x", "invalid_argument"],
  ])("%s: refused, nothing changed", async (_, branch, code) => {
    const before = state();
    await expect(add("one", branch)).rejects.toMatchObject({ code, message: expect.stringContaining(branch) });
    await removeAll("one");
    expect(state()).toBe(before);
    expect(existsSync(join(scratch.path, "harness-one"))).toBe(false);
  });

  test("a repository without a commit is refused with what to do", async () => {
    repo = join(scratch.path, "empty");
    git(scratch.path, "init", "--quiet", "empty");
    await expect(add("one")).rejects.toMatchObject({
      code: "invalid_argument",
      hint: expect.stringContaining("git commit"),
    });
  });

  test("a path that exists is refused and left alone", async () => {
    mkdirSync(join(scratch.path, "harness-one"));
    writeFileSync(join(scratch.path, "harness-one", "mine"), "");
    await expect(add("one")).rejects.toMatchObject({ code: "conflict" });
    await removeAll("one");
    expect(existsSync(join(scratch.path, "harness-one", "mine"))).toBe(true);
  });
});

describe("many at once", () => {
  let compiled: ReturnType<typeof compileSources>;
  beforeAll(() => {
    compiled = compileSources();
  });
  afterAll(() => compiled.remove());

  test("30 on one repository from three processes", async () => {
    const before = state();
    const names = Array.from({ length: 30 }, (_, n) => `many-${n}`);
    const children = [0, 1, 2].map((part) =>
      startChild(compiled.directory, "add-worktree.mjs", [
        "end",
        repo,
        scratch.path,
        ...names.slice(part * 10, part * 10 + 10),
      ]),
    );
    expect((await Promise.all(children.map((child) => child.ended))).map((end) => end.code)).toEqual([0, 0, 0]);
    for (const name of names) {
      expect(git(join(scratch.path, `harness-${name}`), "status", "--porcelain=v2", "--branch")).toContain(
        `work/${name}`,
      );
    }
    await Promise.all(names.map(removeAll));
    expect(state()).toBe(before);
    expect(existsSync(join(repo, ".git", "worktrees"))).toBe(false);
  });
});

describe("removal", () => {
  test("gives back exactly what was there, and again", async () => {
    const before = state();
    const tree = await add("one");
    await removeAll("one");
    await removeAll("one");
    expect(state()).toBe(before);
    expect(existsSync(tree.path)).toBe(false);
  });

  test("another worktree, also one whose directory is away, stays registered", async () => {
    await add("two");
    rmSync(join(scratch.path, "harness-two"), { recursive: true });
    await add("one");
    await removeAll("one");
    expect(git(repo, "worktree", "list")).toContain("harness-two");
  });

  test.each<[string, (tree: Worktree) => void]>([
    [
      "git was killed before it wrote anything down",
      ({ gitDir }) => {
        for (const name of readdirSync(gitDir)) rmSync(join(gitDir, name), { recursive: true });
        writeFileSync(join(gitDir, "locked"), "initializing");
      },
    ],
    [
      "git was killed before it wrote the files",
      ({ path, gitDir }) => {
        writeFileSync(join(gitDir, "locked"), "initializing");
        rmSync(join(path, "a.txt"));
        writeFileSync(join(gitDir, "index.lock"), "");
      },
    ],
    ["the directory is gone", ({ path }) => rmSync(path, { recursive: true })],
    [
      "the inside replaced .git by a directory",
      ({ path }) => {
        rmSync(join(path, ".git"));
        git(path, "init", "--quiet");
      },
    ],
    ["git knows nothing of it any more", ({ gitDir }) => rmSync(gitDir, { recursive: true })],
  ])("%s", async (_, damage) => {
    const before = state();
    const tree = await add("one");
    damage(tree);
    await removeAll("one");
    expect(state()).toBe(before);
    expect(existsSync(join(repo, ".git", "worktrees"))).toBe(false);
    expect(existsSync(tree.path)).toBe(false);
  });

  test("closed directories and links in the tree", async () => {
    const tree = await add("one");
    const kept = join(scratch.path, "kept");
    mkdirSync(kept);
    writeFileSync(join(kept, "file"), "");
    symlinkSync(kept, join(tree.path, "link"));
    mkdirSync(join(tree.path, "closed", "deep"), { recursive: true });
    writeFileSync(join(tree.path, "closed", "deep", "file"), "");
    chmodSync(join(tree.path, "closed", "deep"), 0o555);
    chmodSync(join(tree.path, "closed"), 0);
    await removeAll("one");
    expect([existsSync(tree.path), existsSync(join(kept, "file"))]).toEqual([false, true]);
  });

  test.runIf(process.getuid?.() === 0)("closed directories of an ordinary user", async () => {
    const compiled = compileSources();
    const place = join(scratch.path, "user");
    mkdirSync(place, { mode: 0o777 });
    try {
      const script = `
        mkdir -p ${place}/tree/closed/deep && touch ${place}/tree/closed/deep/file && chmod 555 ${place}/tree/closed/deep && chmod 0 ${place}/tree/closed
        exec node -e 'import("${compiled.directory}/src/machine/remove-tree.js").then((m) => m.removeTree("${place}/tree"))'`;
      chmodSync(scratch.path, 0o755);
      chmodSync(place, 0o777);
      execFileSync("chmod", ["-R", "a+rX", compiled.directory]);
      const env = { PATH: process.env["PATH"], HOME: place, GLOVEBOX_HOME: join(place, "home") };
      execFileSync("setpriv", ["--reuid=12345", "--regid=12345", "--clear-groups", "sh", "-c", script], { env });
      expect(readdirSync(place)).toEqual(["home"]);
    } finally {
      compiled.remove();
    }
  });

  test("a branch that moved, moved and came back, is in use, or was never ours stays", async () => {
    const tree = await add("one");
    const branch = { repo: join(repo, ".git"), name: "work/one", sha: tree.baseSha, mark: "glovebox: created for one" };
    const isThere = (): boolean => git(repo, "branch", "--list", "work/one") !== "";
    await removeBranch(branch);
    expect(isThere()).toBe(true);
    await (await removeWorktree({ repo: join(repo, ".git"), path: tree.path, name: "harness-one" })).gone;
    git(repo, "branch", "--force", "work/one", "other");
    await removeBranch(branch);
    expect(isThere()).toBe(true);
    git(repo, "branch", "--force", "work/one", tree.baseSha);
    await removeBranch(branch);
    expect(isThere()).toBe(true);
    git(repo, "branch", "-D", "work/one");
    git(repo, "branch", "work/one", tree.baseSha);
    await removeBranch(branch);
    expect(isThere()).toBe(true);
  });

  test("a branch of ours that another sandbox opens during its teardown goes with the last of them", async () => {
    const before = state();
    await add("one", "shared");
    const [branch, worktree] = (await readRecord("one"))?.resources ?? [];
    if (branch === undefined || worktree === undefined) throw new Error("the record is empty");
    await removeResource(worktree);
    await add("two", "shared");
    await removeResource(branch);
    expect(git(repo, "branch", "--list", "shared")).not.toBe("");
    await removeAll("two");
    expect(state()).toBe(before);
  });

  test("a teardown beside an open of the same branch leaves no branch, in any order", async () => {
    const before = state();
    const names = ["round-0"];
    await add("round-0", "shared");
    for (let round = 1; round <= 15; round++) {
      const open = async (): Promise<string> => {
        for (let attempt = 0; ; attempt++) {
          const name = `round-${round}-${attempt}`;
          try {
            await add(name, "shared");
            return name;
          } catch (error) {
            if ((error as { code?: string }).code !== "conflict") throw error;
            await removeAll(name);
          }
        }
      };
      const [opened] = await Promise.all([open(), removeAll(names.at(-1) ?? "")]);
      names.push(opened);
    }
    await removeAll(names.at(-1) ?? "");
    expect(state()).toBe(before);
  });

  test("a repository that is gone is no obstacle", async () => {
    const tree = await add("one");
    rmSync(repo, { recursive: true });
    await removeAll("one");
    expect(existsSync(tree.path)).toBe(false);
  });

  test.each(["/", "/tmp", "relative", "/tmp/../etc", "/home", ""])("refuses to remove %j", async (path) => {
    await expect(removeResource({ kind: "directory", path })).rejects.toMatchObject({
      code: expect.stringMatching(/invalid_path|tampered/),
    });
  });

  test("refuses the home of the ledger, the user's and what contains them", async () => {
    const paths = [scratch.home, scratch.path, process.env["HOME"] ?? ""];
    for (const path of paths) {
      await expect(removeResource({ kind: "directory", path })).rejects.toMatchObject({ code: "invalid_path" });
    }
  });

  test("refuses a control group that is not ours", async () => {
    const path = "/sys/fs/cgroup/system.slice";
    await expect(removeResource({ kind: "cgroup", path })).rejects.toMatchObject({ code: "invalid_path" });
  });
});

describe("branch names", () => {
  test.each([
    "-x",
    "--help",
    "--upload-pack=x",
    "a..b",
    "x.lock",
    "x.lock/y",
    "@",
    "HEAD",
    "refs/heads/x",
    "a b",
    ";id",
    "`id`",
    "|x",
    "'",
    '"',
    "ünï",
    "a".repeat(300),
    "",
    "a//b",
    "a/",
    "a.",
    ".a",
    "a/.b",
    "a@{1}",
    "a~1",
    "a^",
    "a:b",
    "a\\b",
    "a\0b",
    "a\n",
    7,
    undefined,
  ])("%j is refused", (name) => {
    expect(() => assertBranchName(name)).toThrow(expect.objectContaining({ code: "invalid_argument" }));
  });

  test.each(["main", "work/x", "Feature/ABC-12_3", "dependabot/npm/@types/node-1.2", "v1.0+build", "fix#12"])(
    "%j is fine for us and for git",
    (name) => {
      expect(() => assertBranchName(name)).not.toThrow();
      expect(git(repo, "check-ref-format", "--branch", name)).toBe(name);
    },
  );
});
