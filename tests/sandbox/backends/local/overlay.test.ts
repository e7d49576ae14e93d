import { existsSync, readdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createLocalSandbox } from "../../../../src/sandbox/backends/local.js";
import { reap } from "../../../../src/sandbox/reap.js";
import type { Sandbox, SandboxOptions } from "../../../../src/sandbox/types.js";
import { descendants, stillBelow } from "../../../support/processes/descendants.js";
import { createRepository, createScratch, git, type Scratch } from "../../../support/scratch.js";

let scratch: Scratch;
let repo: string;
const open: Sandbox[] = [];

beforeEach(() => {
  scratch = createScratch({ ownEtc: true });
  repo = createRepository(join(scratch.path, "repo"));
});
afterEach(async () => {
  for (const sandbox of open.splice(0)) await sandbox.teardown();
  scratch.remove();
});

async function create(opts: SandboxOptions): Promise<Sandbox> {
  const sandbox = await createLocalSandbox({ repo, ...opts });
  open.push(sandbox);
  return sandbox;
}

async function sh(sandbox: Sandbox, script: string): Promise<string> {
  const { exitCode, stdout, stderr } = await sandbox.shell(script);
  if (exitCode !== 0) throw new Error(`exit ${exitCode}: ${stderr}`);
  return stdout.trimEnd();
}

describe.each(["overlay", "copy"] as const)("workspace %s", (workspace) => {
  test("has the files of the commit, a clean status and the history, on its own branch", async () => {
    const sandbox = await create({ workspace, branch: "work/x" });
    expect(await sh(sandbox, "git status --porcelain")).toBe("");
    expect(await sh(sandbox, "git symbolic-ref --short HEAD")).toBe("work/x");
    expect(await sh(sandbox, "git rev-parse HEAD")).toBe(git(repo, "rev-parse", "HEAD"));
    expect(await sh(sandbox, "git log --oneline | wc -l")).toBe(git(repo, "rev-list", "--count", "HEAD"));
    expect((await sandbox.listDirectory()).filter((name) => name !== ".git")).toEqual(
      git(repo, "ls-tree", "--name-only", "HEAD").split("\n"),
    );
  });

  test("the source does not see what is done inside, and another sandbox does not either", async () => {
    const refs = git(repo, "for-each-ref", "refs/heads");
    const [one, two] = [await create({ workspace }), await create({ workspace })];
    await sh(
      one,
      "echo changed > new && for f in $(git ls-files); do echo x >> $f; done && git add -A && git commit -qm inside",
    );
    expect(await sh(two, "git status --porcelain; ls new 2>/dev/null || :")).toBe("");
    expect(git(repo, "status", "--porcelain")).toBe("");
    expect(git(repo, "for-each-ref", "refs/heads")).toBe(refs);
    expect(git(repo, "worktree", "list").split("\n")).toHaveLength(1);
  });

  test("works on a repository that borrows its objects by a link", async () => {
    git(scratch.path, "clone", "--quiet", "--shared", repo, "borrower");
    symlinkSync(join(repo, ".git", "objects"), join(scratch.path, "lent"));
    writeFileSync(join(scratch.path, "borrower/.git/objects/info/alternates"), `${join(scratch.path, "lent")}\n`);
    const gitAlternates = [join(repo, ".git", "objects")];
    const sandbox = await create({ workspace, repo: join(scratch.path, "borrower"), gitAlternates });
    expect(await sh(sandbox, "git log --format=%s && echo x > x")).toBe("second\nfirst");
    expect((await sandbox.changes()).files).toEqual([{ path: "x", status: "added" }]);
  });

  test("changes, snapshot and restore see the merged view", async () => {
    const sandbox = await create({ workspace });
    const [first = ""] = git(repo, "ls-tree", "-r", "--name-only", "HEAD").split("\n");
    await sandbox.deleteFile(first);
    await sandbox.writeFile("dir/new.txt", "new\n");
    const { files, patch } = await sandbox.changes();
    expect(files).toEqual(
      expect.arrayContaining([
        { path: "dir/new.txt", status: "added" },
        { path: first, status: "deleted" },
      ]),
    );
    expect(patch).toContain("+new");
    const id = await sandbox.snapshot();
    await sandbox.writeFile("dir/new.txt", "newer\n");
    await sandbox.writeFile("later", "x");
    await sandbox.restore(id);
    expect(await sandbox.readFile("dir/new.txt")).toBe("new\n");
    expect(await sandbox.stat("later")).toBeNull();
    expect(await sandbox.stat(first)).toBeNull();
  });

  test("forks start with the files as they are, and go their own ways on branches of their own", async () => {
    const sandbox = await create({ workspace, branch: "work/x" });
    await sh(sandbox, "echo mine > mine && git add mine && git commit -qm mine && echo more > more && rm -rf .git/x");
    const forks = await sandbox.fork({ count: 2 });
    open.push(...forks);
    expect(await Promise.all(forks.map((fork) => fork.readFile("more")))).toEqual(["more\n", "more\n"]);
    expect(await Promise.all(forks.map((fork) => sh(fork, "git symbolic-ref --short HEAD")))).toEqual([
      "work/x-fork-1",
      "work/x-fork-2",
    ]);
    expect(
      await Promise.all(forks.map((fork) => sh(fork, "git log -1 --format=%s && git status --porcelain"))),
    ).toEqual(["mine\n?? more", "mine\n?? more"]);
    await forks[0]?.writeFile("more", "changed");
    expect(await forks[1]?.readFile("more")).toBe("more\n");
    expect(await sandbox.readFile("more")).toBe("more\n");
  });

  test("kept, it is found again", async () => {
    const sandbox = await create({ workspace, keep: true });
    await sandbox.writeFile("kept", "yes");
    await sandbox.teardown();
    const again = await createLocalSandbox({ id: sandbox.id, keep: false });
    open.push(again);
    expect(await again.readFile("kept")).toBe("yes");
    expect(await sh(again, "git status --porcelain")).toBe("?? kept");
  });
});

describe("overlay", () => {
  test("a directory of the commit can be renamed", async () => {
    const sandbox = await create({ workspace: "overlay" });
    await sh(sandbox, "mkdir -p d && echo x > d/f && mv d e && cat e/f");
    expect(await sandbox.readFile("e/f")).toBe("x\n");
  });

  test("one base serves all sandboxes on a commit and is never written; the cache is emptied by reap, but for what is used", async () => {
    const one = await create({ workspace: "overlay" });
    const two = await create({ workspace: "overlay" });
    const [first = ""] = git(repo, "ls-tree", "-r", "--name-only", "HEAD").split("\n");
    const before = readFileSync(join(repo, first), "utf8");
    await one.writeFile(first, "overwritten");
    expect(await two.readFile(first)).toBe(before);
    expect((await reap({ cache: 0 })).cache).toEqual([]);
    expect(await two.readFile(first)).toBe(before);
    await one.teardown();
    await two.teardown();
    const removed = (await reap({ cache: 0 })).cache ?? [];
    expect(removed).toHaveLength(1);
    expect(existsSync(removed[0] ?? "/")).toBe(false);
    expect(git(repo, "for-each-ref", "refs/glovebox")).toBe("");
  });

  test("its end is told by the process outside alone, and once it is taken down nothing of it runs any more", async () => {
    const before = descendants(process.pid);
    const sandbox = await create({ workspace: "overlay" });
    await sandbox.spawn({ argv: ["sh", "-c", "trap '' TERM HUP; while :; do sleep 1; done"] });
    const own = (): number[] => descendants(process.pid).filter((pid) => !before.includes(pid));
    await expect.poll(() => own().length).toBeGreaterThanOrEqual(4);
    const [outside = 0, ...inside] = own();
    const told = readlinkSync(`/proc/${outside}/fd/4`);
    expect(told).toMatch(/^socket:/);
    for (const pid of inside) {
      const held = readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`));
      expect(held).not.toContain(told);
    }
    await sandbox.teardown();
    expect(inside.filter((pid) => existsSync(`/proc/${pid}`))).toEqual([]);
    expect(await stillBelow(new Set(before))).toEqual([]);
  });

  test("without isolation it is refused", async () => {
    await expect(createLocalSandbox({ repo, workspace: "overlay", isolation: "none" })).rejects.toMatchObject({
      code: "unsupported",
    });
  });
});
