import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createRecord } from "../../../src/ledger/records.js";
import { hostGit } from "../../../src/sandbox/git/host/host-git.js";
import type { RunJailedGit } from "../../../src/sandbox/git/jailed/jailed-git.js";
import { findRepository, type Repository } from "../../../src/sandbox/git/repository/repository.js";
import { withScratchRepository } from "../../../src/sandbox/git/repository/scratch-repository.js";
import { createSnapshot, type Snapshot } from "../../../src/sandbox/git/snapshot/create-snapshot.js";
import { addWorktree, type Worktree } from "../../../src/sandbox/git/worktree/worktree.js";
import { runInJail } from "../../support/local/jail.js";
import { createRepository, createScratch, git, type Scratch } from "../../support/scratch.js";

let scratch: Scratch;
let repo: string;
let repository: Repository;
let tree: Worktree;
let store: string;
beforeEach(async () => {
  scratch = createScratch();
  store = join(scratch.path, "store");
  await open(createRepository(join(scratch.path, "repo")), "one");
});
afterEach(() => scratch.remove());

async function open(path: string, id: string): Promise<void> {
  repo = path;
  repository = await findRepository(path);
  const workDir = join(scratch.path, `harness-${id}`);
  await createRecord({ id, backend: "local", workDir });
  tree = await addWorktree({ repository, branch: `work/${id}`, path: workDir, record: id });
}

const jailOf =
  (workDir: string, objects: string[] = [], gd = store): RunJailedGit =>
  async (args, opts = {}) =>
    await runInJail(["git", ...args], {
      binds: [
        { source: gd, target: "/gd", writable: true },
        { source: workDir, target: "/wt", writable: false },
        ...objects.map((source) => ({ source, target: "/glovebox/objects", writable: false })),
      ],
      cwd: "/wt",
      env: {
        GIT_DIR: "/gd",
        GIT_WORK_TREE: "/wt",
        GIT_CONFIG_NOSYSTEM: "1",
        GIT_CONFIG_GLOBAL: "/dev/null",
        GIT_NO_LAZY_FETCH: "1",
        GIT_NO_REPLACE_OBJECTS: "1",
        GIT_ALLOW_PROTOCOL: "none",
        ...opts.env,
      },
      ...(opts.stdin && { stdin: opts.stdin }),
    });

async function snapshot(change?: (run: RunJailedGit) => RunJailedGit, maxBytes?: number): Promise<Snapshot> {
  const run = jailOf(tree.path, [repository.objects]);
  return await createSnapshot({
    sandboxId: "one",
    store,
    source: { repository, baseSha: tree.baseSha },
    runJailedGit: change?.(run) ?? run,
    ...(maxBytes && { maxBytes }),
  });
}

const write = (path: string, content: string): void => {
  mkdirSync(join(tree.path, path, ".."), { recursive: true });
  writeFileSync(join(tree.path, path), content);
};
const show = (commit: string, path: string): string => git(repo, "show", `${commit}:${path}`);
const changed = (commit: string): string => git(repo, "diff", "--name-status", "--no-renames", tree.baseSha, commit);

describe("what a snapshot holds", () => {
  test("changed, new, deleted and executable files, links and odd names, not the ignored ones", async () => {
    write("a.txt", "changed\n");
    write("new/deep.txt", "new\n");
    write("ignored/x", "no");
    write("run.sh", "#!/bin/sh\n");
    chmodSync(join(tree.path, "run.sh"), 0o755);
    rmSync(join(tree.path, "sub", "b.txt"));
    symlinkSync("a.txt", join(tree.path, "link"));
    write("-rf", "dash");
    write("line\nbreak \u001b[31m", "odd");
    execFileSync("sh", ["-c", "printf bytes > \"$(printf 'b\\377')\""], { cwd: tree.path });
    const { ref, commit, warnings } = await snapshot();
    expect([ref, warnings]).toEqual(["refs/glovebox/one/1", []]);
    expect(git(repo, "-c", "core.quotePath=true", "ls-tree", "-r", "--name-only", ref).split("\n")).toEqual([
      "-rf",
      ".gitignore",
      "a.txt",
      '"b\\377"',
      '"line\\nbreak \\033[31m"',
      "link",
      "new/deep.txt",
      "run.sh",
    ]);
    expect([show(commit, "a.txt"), show(commit, "link")]).toEqual(["changed", "a.txt"]);
    expect(git(repo, "ls-tree", commit, "run.sh")).toMatch(/^100755/);
    expect(git(repo, "rev-parse", `${ref}^`)).toBe(tree.baseSha);
    expect(git(repo, "fsck", "--strict", "--no-progress")).toBe("");
  });

  test("nothing changed is still a commit, with the tree of the base", async () => {
    const { commit } = await snapshot();
    expect(commit).not.toBe(tree.baseSha);
    expect(git(repo, "rev-parse", `${commit}^{tree}`)).toBe(git(repo, "rev-parse", `${tree.baseSha}^{tree}`));
  });

  test("each has its own number; branches, the worktree and its index stay", async () => {
    const before = [git(repo, "for-each-ref", "refs/heads", "refs/tags"), git(repo, "status", "--porcelain")];
    write("a.txt", "1");
    await snapshot();
    write("a.txt", "2");
    const second = await snapshot();
    expect(second.ref).toBe("refs/glovebox/one/2");
    expect([show("refs/glovebox/one/1", "a.txt"), show(second.ref, "a.txt")]).toEqual(["1", "2"]);
    expect([git(repo, "for-each-ref", "refs/heads", "refs/tags"), git(repo, "status", "--porcelain")]).toEqual(before);
    expect(git(tree.path, "status", "--porcelain")).toBe(" M a.txt");
    expect(readdirSync(join(repo, ".git"))).not.toContain("FETCH_HEAD");
  });

  test("two at once get two numbers", async () => {
    const other = join(scratch.path, "store2");
    const run = jailOf(tree.path, [repository.objects]);
    const options = { sandboxId: "one", source: { repository, baseSha: tree.baseSha } };
    const second = jailOf(tree.path, [repository.objects], other);
    const made = await Promise.all([
      createSnapshot({ ...options, store, runJailedGit: run }),
      createSnapshot({ ...options, store: other, runJailedGit: second }),
    ]);
    expect(made.map((one) => one.ref).sort()).toEqual(["refs/glovebox/one/1", "refs/glovebox/one/2"]);
  });

  test("line ends are stored as the repository wants them", async () => {
    git(repo, "config", "core.autocrlf", "true");
    await open(repo, "two");
    write("a.txt", "one more\r\n");
    const { commit } = await snapshot();
    expect(changed(commit)).toBe("");
  });

  test("a sha256, a shallow and a moved-away source", async () => {
    const first = repo;
    await open(createRepository(join(scratch.path, "long"), "--object-format=sha256"), "two");
    write("a.txt", "long");
    expect((await snapshot()).commit).toHaveLength(64);
    git(scratch.path, "clone", "--quiet", "--depth=1", `file://${first}`, "shallow");
    await open(join(scratch.path, "shallow"), "three");
    write("a.txt", "shallow");
    expect(changed((await snapshot()).commit)).toBe("M\ta.txt");
    git(tree.path, "checkout", "--quiet", "--orphan", "elsewhere");
    git(repo, "branch", "-D", "work/three");
    git(repo, "commit", "--quiet", "--amend", "--allow-empty", "-m", "rewritten");
    git(repo, "update-ref", "-d", "refs/glovebox/one/1");
    git(repo, "remote", "remove", "origin");
    const { ref } = await snapshot();
    expect(git(repo, "for-each-ref", "refs/glovebox", "--format=%(refname)")).toBe(ref);
  });

  test("without a source it goes to a repository of ours", async () => {
    const workDir = join(scratch.path, "plain");
    mkdirSync(workDir);
    writeFileSync(join(workDir, "x"), "plain");
    const take = (): Promise<Snapshot> => createSnapshot({ sandboxId: "two", store, runJailedGit: jailOf(workDir) });
    const first = await take();
    expect(first).toMatchObject({ ref: "refs/glovebox/two/1", gitDir: join(scratch.home, "snapshots", "two.git") });
    expect(git(first.gitDir, "show", `${first.ref}:x`)).toBe("plain");
    rmSync(join(workDir, "x"));
    expect(git(first.gitDir, "ls-tree", "-r", (await take()).ref)).toBe("");
  });
});

describe("hostile trees", () => {
  const canary = (): string => join(scratch.path, "canary");

  test("hooks, filters and a swapped .git do not run on the host and do not count", async () => {
    const evil = `touch ${canary()}; cat`;
    rmSync(join(tree.path, ".git"));
    git(tree.path, "init", "--quiet");
    git(tree.path, "config", "core.fsmonitor", evil);
    git(tree.path, "config", "filter.evil.clean", evil);
    write(".gitattributes", "*.txt filter=evil\n");
    write("a.txt", "changed\n");
    const { commit } = await snapshot();
    expect(changed(commit)).toBe("A\t.gitattributes\nM\ta.txt");
    expect(existsSync(canary())).toBe(false);
  });

  test("nested repositories, with and without a commit, are reported and left out; their programs stay in the jail", async () => {
    for (const name of ["born", "unborn"]) {
      mkdirSync(join(tree.path, name));
      git(join(tree.path, name), "init", "--quiet");
      git(join(tree.path, name), "config", "core.fsmonitor", `touch ${canary()}`);
      write(`${name}/file`, "inside");
    }
    git(join(tree.path, "born"), "-c", "core.fsmonitor=false", "add", "-A");
    git(join(tree.path, "born"), "-c", "core.fsmonitor=false", "commit", "--quiet", "-m", "x");
    write("a.txt", "changed\n");
    const { commit, warnings } = await snapshot();
    expect(changed(commit)).toBe("M\ta.txt");
    expect(warnings).toEqual([expect.stringContaining('"unborn"'), expect.stringContaining('"born"')]);
    expect(existsSync(canary())).toBe(false);
  });

  test("a submodule of the source stays as it is, also when the inside moved it", async () => {
    const part = createRepository(join(scratch.path, "part"));
    git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", part, "part");
    git(repo, "commit", "--quiet", "-m", "with part");
    await open(repo, "two");
    expect(changed((await snapshot()).commit)).toBe("");
    git(join(tree.path, "part"), "init", "--quiet");
    git(join(tree.path, "part"), "commit", "--quiet", "--allow-empty", "-m", "moved");
    const { commit, warnings } = await snapshot();
    expect([changed(commit), warnings]).toEqual(["", [expect.stringContaining('"part"')]]);
  });

  test("FIFOs and sockets are passed over", async () => {
    execFileSync("mkfifo", [join(tree.path, "fifo")]);
    expect(changed((await snapshot()).commit)).toBe("");
  });

  test("a file that cannot be read is an error, not a loss", async () => {
    write("secret", "x");
    chmodSync(join(tree.path, "secret"), 0);
    await expect(snapshot()).rejects.toMatchObject({
      code: "permission_denied",
      message: expect.stringContaining("secret"),
    });
    expect(git(repo, "for-each-ref", "refs/glovebox")).toBe("");
  });

  test("links that lead outside are told", async () => {
    symlinkSync("/etc/passwd", join(tree.path, "absolute"));
    symlinkSync("../../up", join(tree.path, "sub", "up"));
    symlinkSync("../a.txt", join(tree.path, "sub", "inside"));
    const { warnings } = await snapshot();
    expect(warnings).toEqual([expect.stringContaining('"absolute"'), expect.stringContaining('"sub/up"')]);
  });

  test("a carriage return in .gitmodules is refused", async () => {
    write(".gitmodules", '[submodule "x"]\n\tpath = "x\r"\n\turl = ./x\n');
    await expect(snapshot()).rejects.toMatchObject({ code: "tampered" });
    expect(git(repo, "for-each-ref", "refs/glovebox")).toBe("");
  });

  test("a .gitmodules that git's own check refuses", async () => {
    write(".gitmodules", '[submodule "x"]\n\tpath = x\n\turl = -u./evil\n');
    await expect(snapshot()).rejects.toMatchObject({ code: "tampered" });
    expect(git(repo, "for-each-ref", "refs/glovebox")).toBe("");
  });

  test("what git's own check refuses is refused in a big snapshot too", async () => {
    for (let n = 0; n < 150; n++) write(`many/${n}`, `${n}`);
    const { commit } = await snapshot();
    expect(changed(commit).split("\n")).toHaveLength(150);
    write(".gitmodules", '[submodule "x"]\n\tpath = x\n\turl = -u./evil\n');
    await expect(snapshot()).rejects.toMatchObject({ code: "tampered" });
  });

  test("what git may hold of one object is bounded where it reads what comes from inside, and beyond it is limit_exceeded", async () => {
    const limit = await withScratchRepository(join(scratch.path, "private"), repository, (own) =>
      hostGit(["-c", "alias.limit=!echo $GIT_ALLOC_LIMIT", "limit"], own),
    );
    expect(limit).toBe("1g\n");
    await expect(
      hostGit(["diff", "--no-index", "/dev/null", join(repo, "a.txt")], { cwd: repo, env: { GIT_ALLOC_LIMIT: "1" } }),
    ).rejects.toMatchObject({ code: "limit_exceeded" });
  });

  test("over the limit is refused", async () => {
    write("a.txt", "changed");
    await expect(snapshot(undefined, 10)).rejects.toMatchObject({ code: "limit_exceeded" });
  });
});

describe("a jail that was taken over", () => {
  const packFile = (): string => join(store, readdirSync(store).find((name) => name.endsWith(".pack")) ?? "none");
  /** Lets the real jail work, then does something to the store once the pack was made. */
  const afterPack =
    (act: () => void) =>
    (run: RunJailedGit): RunJailedGit =>
    async (args, opts) => {
      const result = await run(args, opts);
      if (args.includes("pack-objects")) act();
      return result;
    };

  test.each<[string, () => void]>([
    ["no pack", () => rmSync(packFile())],
    [
      "a link in its place",
      () => {
        const path = packFile();
        renameSync(path, join(scratch.path, "elsewhere"));
        symlinkSync(join(scratch.path, "elsewhere"), path);
      },
    ],
    [
      "a FIFO in its place",
      () => {
        const path = packFile();
        rmSync(path);
        execFileSync("mkfifo", [path]);
      },
    ],
    ["rubbish in its place", () => writeFileSync(packFile(), "PACK rubbish that is long enough")],
  ])("%s", async (_, act) => {
    await expect(snapshot(afterPack(act))).rejects.toMatchObject({ code: "tampered" });
    expect([git(repo, "for-each-ref", "refs/glovebox"), existsSync(store)]).toEqual(["", false]);
  });

  test("a configuration planted in the store runs nothing on the host", async () => {
    const canary = join(scratch.path, "canary");
    const plant = afterPack(() => {
      git(store, "config", "core.fsmonitor", `touch ${canary}`);
      git(store, "config", "uploadpack.packObjectsHook", `touch ${canary}; false`);
      mkdirSync(join(store, "hooks"));
      writeFileSync(join(store, "hooks", "reference-transaction"), `#!/bin/sh\ntouch ${canary}\n`, { mode: 0o755 });
    });
    expect((await snapshot(plant)).ref).toBe("refs/glovebox/one/1");
    expect(existsSync(canary)).toBe(false);
  });

  test("another commit than it said, or an answer that is no commit", async () => {
    const lie =
      (answer: string) =>
      (run: RunJailedGit): RunJailedGit =>
      async (args, opts) =>
        args.includes("commit-tree") ? { exitCode: 0, stdout: Buffer.from(answer), stderr: "" } : await run(args, opts);
    await expect(snapshot(lie("--upload-pack=x"))).rejects.toMatchObject({ code: "tampered" });
    await expect(snapshot(lie(git(repo, "rev-parse", "other")))).rejects.toThrow();
    expect(git(repo, "for-each-ref", "refs/glovebox")).toBe("");
  });
});
