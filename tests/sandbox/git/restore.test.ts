import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { SandboxEvent } from "../../../contracts/types.js";
import { runtimeDir } from "../../../src/machine/home.js";
import { createLocalSandbox } from "../../../src/sandbox/backends/local.js";
import type { Sandbox, SandboxOptions } from "../../../src/sandbox/types.js";
import { deleteSnapshot, listSnapshots, reap } from "../../../src/sandbox.js";
import { descendants, stillBelow } from "../../support/processes/descendants.js";
import { createRepository, createScratch, git, type Scratch } from "../../support/scratch.js";

let scratch: Scratch;
let repo: string;
let opened: Sandbox[];
let events: SandboxEvent[];
beforeEach(() => {
  scratch = createScratch();
  repo = createRepository(join(scratch.path, "repo"));
  opened = [];
  events = [];
});
afterEach(async () => {
  for (const sandbox of opened) await sandbox.teardown();
  scratch.remove();
});

async function open(opts: SandboxOptions = { repo }): Promise<Sandbox> {
  const sandbox = await createLocalSandbox({ ...opts, onEvent: (event) => events.push(event) });
  opened.push(sandbox);
  return sandbox;
}

async function run(sandbox: Sandbox, script: string): Promise<string> {
  const { exitCode, stdout, stderr } = await sandbox.shell(script);
  if (exitCode !== 0) throw new Error(`${script}: ${stderr}`);
  return stdout;
}

const warnings = (): string[] => events.filter(({ type }) => type === "warning").map(({ message }) => message);
/** Every file with its mode and content, whatever its name. */
const LOOK = `find . -name .git -prune -o -printf '%P|%y|%m|%l\\0' | sort -z | tr '\\0\\n' '\\n?' && find . -name .git -prune -o -type f -print0 | sort -z | xargs -0 -r sha256sum -b`;

describe("many snapshots of one sandbox", () => {
  test.each(["worktree", "overlay", "copy"] as const)(
    "each holds what was there (%s), and nothing of their jails stays",
    async (workspace) => {
      const before = new Set(descendants(process.pid));
      const sandbox = await open({ repo, workspace });
      for (const round of [1, 2, 3, 4]) {
        await run(
          sandbox,
          `echo ${round} > a.txt; rm -f new-*; echo ${round} > new-${round}; git commit -qam ${round}`,
        );
        const id = await sandbox.snapshot();
        const { commit = "" } = (await listSnapshots()).find((each) => each.id === id) ?? {};
        expect([git(repo, "show", `${commit}:a.txt`), git(repo, "show", `${commit}:new-${round}`)]).toEqual([
          String(round),
          String(round),
        ]);
        expect(
          git(repo, "ls-tree", "--name-only", commit)
            .split("\n")
            .filter((name) => name.startsWith("new-")),
        ).toEqual([`new-${round}`]);
        expect(git(repo, "log", "--format=%s", "-1", `${commit}^`)).toBe(String(round));
      }
      const stores = (): string[] => readdirSync(runtimeDir(sandbox.id)).filter((name) => name.startsWith("store-"));
      // Over a layer no jail is begun beforehand.
      await expect.poll(stores).toHaveLength(workspace === "overlay" ? 0 : 1);
      await sandbox.teardown();
      expect(await stillBelow(before)).toEqual([]);
      expect(existsSync(runtimeDir(sandbox.id))).toBe(false);
    },
  );
});

describe("restore", () => {
  test("brings tracked, new and ignored files back, whatever their names, and takes away what came later", async () => {
    const sandbox = await open();
    await run(
      sandbox,
      `printf 'changed\\n' > a.txt; rm sub/b.txt; printf x > "line
break"; printf y > ./-rf; printf z > "$(printf 'b\\377d')"; printf q > 'quote"\\'; mkdir -p ignored/deep empty 'sp ace'
      printf no > ignored/deep/file; printf '#!/bin/sh\\n' > tool; chmod 755 tool; ln -s tool link; ln -s /nowhere dangling; ln -s ../../.. 'sp ace/up'
      printf '*.log\\n' > .gitignore; printf log > one.log; printf key > secret.log; chmod 600 secret.log; head -c 300000 /dev/urandom > noise`,
    );
    const before = await run(sandbox, LOOK);
    const id = await sandbox.snapshot();
    await run(
      sandbox,
      `rm -rf -- * ; printf later > later; mkdir -p tool/is/now; printf d > tool/is/now/d; mkdir shut; printf x > shut/x; chmod 000 shut
      printf other > "$(printf 'c\\376')"; ln -s /etc ignored; git add -A 2>/dev/null; printf more > .gitignore`,
    );
    await sandbox.restore(id);
    expect(await run(sandbox, LOOK)).toBe(before);
    expect(before).toContain("ignored/deep/file");
    expect(before).toContain("secret.log|f|600");
    expect(await run(sandbox, "git status --porcelain -- a.txt sub/b.txt tool")).toBe(
      " M a.txt\n D sub/b.txt\n?? tool\n",
    );
  });

  test("ignored files are in an archive that only the user can read, and never in the repository", async () => {
    const sandbox = await open();
    await run(sandbox, "mkdir ignored; printf hidden > ignored/x; printf seen > seen");
    const id = await sandbox.snapshot();
    const [info] = await listSnapshots();
    expect(info).toMatchObject({ id, sandboxId: sandbox.id, backend: "local", gitDir: join(repo, ".git") });
    expect(statSync(info?.archive ?? "").mode & 0o777).toBe(0o600);
    expect(execFileSync("tar", ["-tf", info?.archive ?? ""]).toString()).toBe("ignored/\nignored/x\n");
    expect(git(repo, "ls-tree", "-r", "--name-only", info?.ref ?? "").split("\n")).not.toContain("ignored/x");
    const objects = git(repo, "cat-file", "--batch-check", "--batch-all-objects").split("\n");
    const wanted = execFileSync("git", ["hash-object", "--stdin"], { input: "hidden" }).toString().trim();
    expect(objects.some((line) => line.startsWith(wanted))).toBe(false);
  });

  test("no archive where there is nothing to put in", async () => {
    const sandbox = await open();
    const id = await sandbox.snapshot();
    expect(await listSnapshots()).toEqual([expect.not.objectContaining({ archive: expect.anything() })]);
    await run(sandbox, "rm -rf -- * .gitignore; printf x > x");
    await sandbox.restore(id);
    expect(await run(sandbox, "git status --porcelain --ignored")).toBe("");
  });

  test("an empty tree", async () => {
    const sandbox = await open();
    await run(sandbox, "rm -rf -- * .gitignore");
    const id = await sandbox.snapshot();
    await run(sandbox, "printf x > x");
    await sandbox.restore(id);
    expect(await sandbox.listDirectory()).toEqual([".git"]);
  });

  test("nested repositories come back whole and are told of", async () => {
    const sandbox = await open();
    await run(
      sandbox,
      `for n in born unborn; do git init -q $n; printf in > $n/file; done; printf out > normal
      cd born && git add -A && git -c user.name=a -c user.email=b commit -qm x`,
    );
    const id = await sandbox.snapshot();
    expect(warnings()).toEqual([expect.stringContaining('"unborn"'), expect.stringContaining('"born"')]);
    await run(sandbox, "rm -rf born unborn normal");
    await sandbox.restore(id);
    expect(
      await run(sandbox, "cat born/file unborn/file normal; git -C born log --format=%s; git -C unborn status -s"),
    ).toBe("ininoutx\n?? file\n");
  });

  test("commits made inside are in its history, and are checked out again after it", async () => {
    const sandbox = await open({ repo, branch: "work" });
    await run(
      sandbox,
      "printf 1 > one; git add one; git commit -qm one; printf 2 > two; git add two; git commit -qm two; printf 3 > three",
    );
    const id = await sandbox.snapshot();
    const [info] = await listSnapshots();
    expect(git(repo, "log", "--format=%s", info?.ref ?? "").split("\n")).toEqual([
      `Snapshot of sandbox ${sandbox.id}`,
      "two",
      "one",
      "second",
      "first",
    ]);
    await run(
      sandbox,
      "git checkout -q -f -b elsewhere HEAD~2; git branch -D work; rm three; git commit -q --allow-empty -m other",
    );
    await sandbox.restore(id);
    expect(await run(sandbox, "git log --format=%s -2; git symbolic-ref HEAD; git status --porcelain")).toBe(
      "two\none\nrefs/heads/work\n?? three\n",
    );
    expect(git(repo, "rev-parse", "work")).toBe(git(repo, "rev-parse", "main"));
    expect(git(repo, "fsck", "--strict", "--no-progress")).toBe("");
  });

  test("a history that does not descend from the start is left out, and told", async () => {
    const sandbox = await open();
    await run(sandbox, "git checkout -q --orphan alone; printf 1 > one; git add -A; git commit -qm alone");
    const id = await sandbox.snapshot();
    const [info] = await listSnapshots();
    expect(git(repo, "rev-parse", `${info?.ref}^`)).toBe(git(repo, "rev-parse", "main"));
    expect(warnings()).toEqual([expect.stringContaining("commits of the sandbox are left out")]);
    await run(sandbox, "rm one");
    await sandbox.restore(id);
    expect(await run(sandbox, "cat one; git status --porcelain; git log --format=%s")).toBe("1alone\n");
  });

  test("a git directory that the inside has broken works again after it, with the commits", async () => {
    const sandbox = await open({ repo, branch: "work" });
    await run(sandbox, "printf 1 > one; git add one; git commit -qm one; printf 2 > two");
    const id = await sandbox.snapshot();
    await run(
      sandbox,
      "find /glovebox/git -mindepth 1 -delete; ln -s /etc/passwd /glovebox/git/HEAD; mkfifo /glovebox/git/config",
    );
    await sandbox.restore(id);
    expect(
      await run(
        sandbox,
        "git log -1 --format=%s; git symbolic-ref --short HEAD; git status --porcelain; git fsck --no-dangling",
      ),
    ).toBe("one\nwork\n?? two\n");
    expect(warnings()).toEqual([expect.stringContaining("was broken and has been replaced")]);
  });

  test("without a repository, with a .git that was made inside", async () => {
    const sandbox = await open({});
    await run(
      sandbox,
      "git init -q; printf x > x; git add x; git commit -qm own --author='a <b>'".replace(
        "git commit",
        "git -c user.name=a -c user.email=b commit",
      ),
    );
    const id = await sandbox.snapshot();
    await run(sandbox, "rm -rf .git x");
    await sandbox.restore(id);
    expect(await run(sandbox, "git log --format=%s; git status --porcelain")).toBe("own\n");
  });

  test("in a directory of the user's the .git is let alone", async () => {
    const sandbox = await open({ baseDir: repo });
    await run(sandbox, "printf changed > a.txt");
    const id = await sandbox.snapshot();
    await run(sandbox, "rm a.txt; printf y > y");
    await sandbox.restore(id);
    expect(git(repo, "status", "--porcelain")).toBe(" M a.txt");
  });

  test("without isolation", async () => {
    const sandbox = await open({ repo, isolation: "none" });
    await run(sandbox, "printf changed > a.txt; mkdir ignored; printf i > ignored/i");
    const id = await sandbox.snapshot();
    await run(sandbox, "rm -r a.txt ignored; printf y > y");
    await sandbox.restore(id);
    expect(await run(sandbox, "git status --porcelain --ignored")).toBe(" M a.txt\n!! ignored/\n");
  });

  test("line ends come back as the repository has them checked out", async () => {
    git(repo, "config", "core.autocrlf", "true");
    const sandbox = await open();
    const before = await run(sandbox, LOOK);
    const id = await sandbox.snapshot();
    await run(sandbox, "rm a.txt");
    await sandbox.restore(id);
    expect(await run(sandbox, LOOK)).toBe(before);
  });
});

describe("ids", () => {
  test("outlive the sandbox and its reaping, and are restored into another one of the repository", async () => {
    const first = await open({ repo, branch: "one" });
    await run(first, "printf x > x; git add x; git commit -qm inside; mkdir ignored; printf y > ignored/y");
    const id = await first.snapshot();
    await first.teardown();
    await reap();
    git(repo, "gc", "--quiet", "--prune=now");
    const second = await open({ repo, branch: "two" });
    await second.restore(id);
    expect(await run(second, "cat x ignored/y; git log -1 --format=%s; git symbolic-ref --short HEAD")).toBe(
      "xyinside\ntwo\n",
    );
    await deleteSnapshot(id);
    git(repo, "gc", "--quiet", "--prune=now");
    expect(await run(second, "git fsck && git status --porcelain")).toBe("");
  });

  test("of another repository, directory or kind are refused and change nothing", async () => {
    const other = createRepository(join(scratch.path, "other"));
    const foreign = await (await open({ repo: other })).snapshot();
    const empty = await (await open({})).snapshot();
    const sandbox = await open();
    await run(sandbox, "printf x > x");
    for (const id of [foreign, empty]) await expect(sandbox.restore(id)).rejects.toMatchObject({ code: "conflict" });
    await expect((await open({ baseDir: other })).restore(empty)).rejects.toMatchObject({ code: "conflict" });
    expect(await sandbox.readFile("x")).toBe("x");
    expect(existsSync(join(other, "a.txt"))).toBe(true);
  });

  test.each(["nothing", "../../etc/passwd", "--help", "a/b", "A".repeat(200)])("%s is not_found", async (id) => {
    const sandbox = await open({});
    await expect(sandbox.restore(id)).rejects.toMatchObject({ code: "not_found" });
    await expect(deleteSnapshot(id)).rejects.toMatchObject({ code: "not_found" });
  });

  test("a deleted one is gone with its ref and its archive", async () => {
    const sandbox = await open();
    await run(sandbox, "mkdir ignored; printf y > ignored/y");
    const id = await sandbox.snapshot();
    const other = await sandbox.snapshot();
    await deleteSnapshot(id);
    expect((await listSnapshots()).map((info) => info.id)).toEqual([other]);
    expect(git(repo, "for-each-ref", "refs/glovebox", "--format=%(refname)")).toBe(`refs/glovebox/${sandbox.id}/2`);
    expect(readdirSync(join(scratch.home, "snapshots")).sort()).toEqual([`${other}.json`, `${other}.tar`]);
    await expect(sandbox.restore(id)).rejects.toMatchObject({ code: "not_found" });
  });

  test("of a sandbox without a repository go with their store once the last is deleted", async () => {
    const sandbox = await open({});
    await run(sandbox, "printf x > x");
    const ids = [await sandbox.snapshot(), await sandbox.snapshot()];
    await sandbox.teardown();
    for (const id of ids) await deleteSnapshot(id);
    expect(readdirSync(join(scratch.home, "snapshots"))).toEqual([]);
  });

  test("one whose ref the user deleted is told, and nothing changes", async () => {
    const sandbox = await open();
    const id = await sandbox.snapshot();
    git(repo, "update-ref", "-d", `refs/glovebox/${sandbox.id}/1`);
    await run(sandbox, "printf x > x");
    await expect(sandbox.restore(id)).rejects.toMatchObject({ code: "not_found" });
    expect(await sandbox.readFile("x")).toBe("x");
  });

  test("a record cut at any byte is told, hides no other, and keeps its snapshot", async () => {
    const sandbox = await open();
    await run(sandbox, "mkdir ignored; printf y > ignored/y");
    const [id, other] = [await sandbox.snapshot(), await sandbox.snapshot()];
    const path = join(scratch.home, "snapshots", `${id}.json`);
    const whole = readFileSync(path);
    // Without its last line end it is still whole.
    for (let length = 0; length < whole.length - 1; length++) {
      writeFileSync(path, whole.subarray(0, length));
      expect((await listSnapshots()).map((each) => each.id)).toEqual([other]);
      await expect(sandbox.restore(id)).rejects.toMatchObject({ code: "tampered" });
    }
    await sandbox.teardown();
    await reap();
    expect(git(repo, "for-each-ref", "refs/glovebox", "--format=%(refname)").split("\n")).toHaveLength(2);
    expect(existsSync(join(scratch.home, "snapshots", `${id}.tar`))).toBe(true);
    writeFileSync(path, whole);
    const second = await open();
    await second.restore(id);
    expect(await second.readFile("ignored/y")).toBe("y");
  });

  test("what never got an id is taken away with the sandbox, and nothing else", async () => {
    const sandbox = await open();
    const id = await sandbox.snapshot();
    const commit = git(repo, "rev-parse", "main");
    git(repo, "update-ref", `refs/glovebox/${sandbox.id}/2`, commit);
    git(repo, "update-ref", "refs/glovebox/someone-else/1", commit);
    writeFileSync(join(scratch.home, "snapshots", `${sandbox.id}-2-00000000.tar`), "");
    await sandbox.teardown();
    expect(git(repo, "for-each-ref", "refs/glovebox", "--format=%(refname)").split("\n").sort()).toEqual(
      [`refs/glovebox/${sandbox.id}/1`, "refs/glovebox/someone-else/1"].sort(),
    );
    expect(readdirSync(join(scratch.home, "snapshots"))).toEqual([`${id}.json`]);
    rmSync(join(scratch.home, "snapshots"), { recursive: true });
  });
});
