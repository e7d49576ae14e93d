import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { SandboxEvent } from "../../../contracts/types.js";
import { runtimeDir } from "../../../src/machine/home.js";
import { createLocalSandbox } from "../../../src/sandbox/backends/local.js";
import type { Sandbox } from "../../../src/sandbox/types.js";
import { deleteSnapshot, listSandboxes, listSnapshots } from "../../../src/sandbox.js";
import { change } from "../../support/change.js";
import { liveThrough, type Stage, setStage } from "../../support/git/hostile-cycle.js";
import { type MirroredOptions, openMirrored } from "../../support/git/mirrored.js";
import { git } from "../../support/scratch.js";

let stage: Stage;
let opened: Sandbox[];
let events: SandboxEvent[];
beforeEach(async () => {
  stage = await setStage();
  opened = [];
  events = [];
});
afterEach(async () => {
  for (const sandbox of opened) await sandbox.teardown();
  await stage.close();
});

async function open(opts: Partial<MirroredOptions> = {}): Promise<Sandbox> {
  const { repo, scratch } = stage;
  const onEvent = (event: SandboxEvent): void => void events.push(event);
  const sandbox = await openMirrored(scratch.path, { repo, branch: "work", onEvent, ...opts });
  opened.push(sandbox);
  return sandbox;
}

async function run(sandbox: Sandbox, script: string): Promise<string> {
  const { exitCode, stdout, stderr } = await sandbox.shell(script);
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
  return stdout;
}

const warnings = (): string[] => events.filter(({ type }) => type === "warning").map(({ message }) => message);

describe("a repository in a sandbox that the host cannot look into", () => {
  test("has its files, and a git of its own with branches, tags and history, without a look outside", async () => {
    const sandbox = await open();
    expect(await run(sandbox, "git status --porcelain; git branch --show-current; git log --format=%s; git tag")).toBe(
      "work\nsecond\nfirst\nv1\n",
    );
    expect(
      await run(sandbox, "git fsck --strict --no-progress; cat .git/objects/info/alternates 2>/dev/null; ls"),
    ).toBe("a.txt\nsub\n");
    expect(await sandbox.readFile(".git/config")).not.toContain("origin");
  });

  test("changes are told, the repository is not touched, nothing is left of the look", async () => {
    const before = [git(stage.repo, "for-each-ref", "refs/heads"), git(stage.repo, "count-objects", "-v")];
    const sandbox = await open();
    expect(await sandbox.changes()).toEqual({ patch: "", files: [] });
    await run(
      sandbox,
      `printf 'x\\n' > new; printf 'changed\\n' > a.txt; touch -d 2001-01-01 a.txt; mv sub/b.txt sub/c.txt; mkdir ignored; printf i > ignored/i
      ln -s /usr/bin/env absolute; ln -s ../../up up; printf 1 > ./-rf; printf 3 > "$(printf 'b\\377d')"; chmod 755 new; mkfifo fifo`,
    );
    const { files, patch } = await sandbox.changes();
    expect(files.map(({ path, status }) => `${status} ${path}`)).toEqual([
      "added -rf",
      "modified a.txt",
      "added absolute",
      "added b\ufffdd",
      "added new",
      "renamed sub/c.txt",
      "added up",
    ]);
    expect(patch).toContain("new file mode 100755");
    expect([git(stage.repo, "for-each-ref", "refs/heads"), git(stage.repo, "count-objects", "-v")]).toEqual(before);
    expect(readdirSync(runtimeDir(sandbox.id)).filter((name) => name.includes("-"))).toEqual([]);
  });

  test("commits made inside are pushed with what came after them, and the inside knows of it", async () => {
    const sandbox = await open();
    await run(sandbox, "printf one > one; git add -A; git commit -qm inside; printf two > two");
    expect(await sandbox.pushBranch("work", stage.token)).toEqual({ pushed: true });
    expect(git(stage.remote, "log", "--format=%s", "work").split("\n").slice(1)).toEqual(["inside", "second", "first"]);
    expect(git(stage.remote, "show", "work:two")).toBe("two");
    expect(git(stage.repo, "rev-parse", "work")).toBe(git(stage.remote, "rev-parse", "work"));
    expect(await run(sandbox, "git status --porcelain; git rev-parse HEAD")).toBe(
      `${git(stage.remote, "rev-parse", "work")}\n`,
    );
    await run(sandbox, "printf three > three");
    expect(await sandbox.pushBranch("work", stage.token)).toEqual({ pushed: true });
    expect(git(stage.remote, "rev-list", "--count", "work")).toBe("5");
    expect(await sandbox.defaultBranch()).toBe("main");
    expect(warnings()).toEqual([]);
  });

  test("without a git inside it is the same", async () => {
    const sandbox = await open({ hasGit: false });
    expect((await sandbox.shell("git status")).exitCode).not.toBe(0);
    await run(sandbox, "printf one > one");
    expect((await sandbox.changes()).files).toEqual([{ path: "one", status: "added" }]);
    expect(await sandbox.pushBranch("work", stage.token)).toEqual({ pushed: true });
    await run(sandbox, "printf two > two");
    expect(await sandbox.pushBranch("work", stage.token)).toEqual({ pushed: true });
    expect(git(stage.remote, "rev-list", "--count", "work")).toBe("4");
    expect(git(stage.remote, "ls-tree", "--name-only", "work").split("\n")).toEqual(
      expect.arrayContaining(["one", "two"]),
    );
    expect(warnings()).toEqual([]);
  });

  test.each([true, false])(
    "a snapshot is restored, with ignored files and commits (git inside: %s)",
    async (hasGit) => {
      const sandbox = await open({ hasGit });
      if (hasGit) await run(sandbox, "printf c > c; git add -A; git commit -qm inside");
      await run(sandbox, "printf new > new; mkdir ignored empty; printf warm > ignored/x; ln -s /etc/passwd absolute");
      const id = await sandbox.snapshot();
      await run(sandbox, "rm -rf .git new ignored empty absolute; printf mess > mess");
      await sandbox.restore(id);
      expect(await run(sandbox, "ls; cat ignored/x; readlink absolute")).toBe(
        `a.txt\nabsolute\n${hasGit ? "c\n" : ""}empty\nignored\nnew\nsub\nwarm/etc/passwd\n`,
      );
      if (hasGit) expect(await run(sandbox, "git log -1 --format=%s")).toBe("inside\n");
      expect((await sandbox.changes()).files.map(({ path }) => path)).toEqual([
        "absolute",
        ...(hasGit ? ["c"] : []),
        "new",
      ]);
      await sandbox.teardown();
      const another = await open({ branch: "other-work", hasGit });
      await another.restore(id);
      expect(await another.readFile("new")).toBe("new");
      expect(await another.pushBranch("other-work", stage.token)).toEqual({ pushed: true });
      expect(git(stage.remote, "log", "--format=%s", "other-work").includes("inside")).toBe(hasGit);
      await deleteSnapshot(id);
      expect(await listSnapshots()).toEqual([]);
    },
  );

  test("a copy that the backend made by itself is on a branch of its own, and goes its own way", async () => {
    const sandbox = await open();
    await run(sandbox, "printf one > one; git add -A; git commit -qm inside");
    const [first, second] = await sandbox.fork({ count: 2 });
    opened.push(first as Sandbox, second as Sandbox);
    await run(second as Sandbox, "printf two > two");
    expect(await run(second as Sandbox, "git branch --show-current; git log -1 --format=%s")).toBe(
      "work-fork-2\ninside\n",
    );
    expect((await first?.changes())?.files.map(({ path }) => path)).toEqual(["one"]);
    expect(await second?.pushBranch("work-fork-2", stage.token)).toEqual({ pushed: true });
    expect(git(stage.remote, "log", "--format=%s", "work-fork-2").split("\n").slice(1)).toEqual([
      "inside",
      "second",
      "first",
    ]);
  });

  test("nothing is left after the end", async () => {
    const sandbox = await open();
    await sandbox.changes();
    await sandbox.teardown();
    expect(existsSync(sandbox.workDir)).toBe(false);
    expect(await listSandboxes()).toEqual([]);
    expect(git(stage.repo, "for-each-ref", "--format=%(refname)", "refs/heads", "refs/glovebox")).toMatch(
      /^refs\/glovebox\/bases\/[0-9a-f]+\nrefs\/heads\/main\nrefs\/heads\/other$/,
    );
  });

  test("a repository without a commit, a name that is no branch and a directory that is none are refused first", async () => {
    git(stage.scratch.path, "init", "--quiet", "bare-new");
    await expect(open({ repo: join(stage.scratch.path, "bare-new") })).rejects.toMatchObject({
      code: "invalid_argument",
    });
    await expect(open({ branch: "-x" })).rejects.toMatchObject({ code: "invalid_argument" });
    await expect(open({ repo: join(stage.scratch.path, "none") })).rejects.toMatchObject({ code: "not_found" });
    expect(await listSandboxes()).toEqual([]);
  });
});

describe("planted inside, none of it reaches the host", () => {
  const life = (plant: string) =>
    liveThrough(stage, plant, { brief: true, open: (opts) => open(opts as Partial<MirroredOptions>) });
  const unharmed = { harm: [], push: { pushed: true } };

  test("programs in settings, attributes and hooks", async () => {
    const { payload } = stage;
    const lived = await life(
      `printf '* filter=x diff=x\\n' > .gitattributes; mkdir -p .git/hooks
      for h in pre-commit post-index-change reference-transaction post-checkout fsmonitor-watchman pre-push; do
        printf '#!/bin/sh\\n${payload} >/dev/null </dev/null\\n' > .git/hooks/$h; chmod 755 .git/hooks/$h; done
      for k in core.fsmonitor filter.x.clean filter.x.smudge diff.x.textconv diff.external core.askPass core.sshCommand; do
        git config $k '${payload}'; done; git config core.worktree '${stage.victim}'; git config core.hooksPath "$PWD/.git/hooks"`,
    );
    expect(lived).toMatchObject(unharmed);
    expect(git(stage.remote, "show", "work:work.txt")).toBe("work");
  });

  test.each([
    ["a link to a repository of the host's", (victim: string) => `rm -rf .git; ln -s ${victim}/.git .git`],
    ["a file that names one", (victim: string) => `rm -rf .git; printf 'gitdir: ${victim}/.git\\n' > .git`],
    ["gone", () => "rm -rf .git"],
    ["a FIFO", () => "rm -rf .git; mkfifo .git"],
    [
      "one that borrows from elsewhere",
      (victim: string) => `printf '${victim}/.git/objects\\n' > .git/objects/info/alternates`,
    ],
    ["one that shares elsewhere", (victim: string) => `printf '${victim}/.git\\n' > .git/commondir`],
    ["full of links", () => "rm -rf .git/HEAD .git/objects; ln -s /etc/passwd .git/HEAD; ln -s / .git/objects"],
  ])(".git is %s", async (_, plant) => {
    const lived = await life(plant(stage.victim));
    expect(lived).toMatchObject(unharmed);
    expect(lived.changes).toMatchObject({ files: [{ path: "work.txt", status: "added" }] });
  });

  test("nested repositories, by a directory, by a file and by a bare one", async () => {
    const { payload, victim } = stage;
    const lived = await life(
      `git init -q nested; git -C nested config core.fsmonitor '${payload}'; printf in > nested/file
      git init -q full; git -C full config filter.x.clean '${payload}'; printf '* filter=x\\n' > full/.gitattributes; git -C full commit -q --allow-empty -m x
      mkdir named; printf 'gitdir: ${victim}/.git\\n' > named/.git; git init -q --bare bare; git --git-dir=bare config core.fsmonitor '${payload}'`,
    );
    expect(lived).toMatchObject({ harm: [] });
    expect(lived.warnings.join("\n")).toContain('"nested"');
  });

  test("an archive that the service made up: names that lead out are refused, and nothing is written", async () => {
    const header = Buffer.alloc(512);
    header.write("../../escaped", 0);
    header.write("0000644\0", 100);
    header.write("00000000000\0", 124);
    header.write("00000000000\0", 136);
    header.write("ustar\x0000", 257);
    header.write("0", 156);
    const sandbox = await open({
      tamper: (driver) =>
        change(driver, {
          async *exportTree() {
            yield Buffer.concat([fixed(header), Buffer.alloc(1024)]);
          },
        }),
    });
    await expect(sandbox.changes()).rejects.toMatchObject({ code: "path_confinement" });
    expect(readdirSync(runtimeDir(sandbox.id)).filter((name) => name.includes("mirror"))).toEqual([]);
  });
});

/** With the sum that a reader expects. */
function fixed(header: Buffer): Buffer {
  header.fill(" ", 148, 156);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return header;
}

test("where the history is too large, the one commit goes in alone, and the user is told", async () => {
  const { writeStandaloneGit } = await import("../../../src/sandbox/git/sandbox-git/standalone-git.js");
  const { findRepository } = await import("../../../src/sandbox/git/repository/repository.js");
  const repository = await findRepository(stage.repo);
  const sha = git(stage.repo, "rev-parse", "main");
  const dir = join(stage.scratch.path, "standalone");
  expect(await writeStandaloneGit({ repository, branch: "work", sha, dir, maxHistory: 0 })).toEqual({
    isComplete: false,
  });
  writeFileSync(join(dir, "config"), "[core]\n\trepositoryformatversion = 0\n\tbare = true\n");
  expect(git(dir, "log", "--format=%s", "work")).toBe("second");
  expect(git(dir, "fsck", "--strict", "--no-progress")).toBe("");
  expect(git(dir, "cat-file", "--batch-all-objects", "--batch-check=%(objecttype)").split("\n").sort()).toEqual(
    ["blob", "blob", "blob", "commit", "tree", "tree"].sort(),
  );
});

test("what a process that died left of a look is gone when the sandbox is opened again", async () => {
  const first = await createLocalSandbox({ keep: true });
  await first.writeFile("kept", "kept");
  await first.teardown();
  const dir = runtimeDir(first.id);
  mkdirSync(join(dir, "mirror-0123456789ab", "tree"), { recursive: true });
  writeFileSync(join(dir, "store-0123456789ab.pack"), "");
  const before = readdirSync(dir).filter((name) => name.includes("0123456789ab"));
  const again = await createLocalSandbox({ id: first.id, keep: false });
  expect(before).toHaveLength(2);
  expect(readdirSync(dir).filter((name) => name.includes("0123456789ab"))).toEqual([]);
  expect(await again.readFile("kept")).toBe("kept");
  await again.teardown();
});
