import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createLocalSandbox } from "../../../src/sandbox/backends/local.js";
import type { Sandbox, SandboxOptions } from "../../../src/sandbox/types.js";
import { listSandboxes } from "../../../src/sandbox.js";
import { createRepository, createScratch, git, type Scratch } from "../../support/scratch.js";

let scratch: Scratch;
let repo: string;
let opened: Sandbox[];
beforeEach(() => {
  scratch = createScratch();
  repo = createRepository(join(scratch.path, "repo"));
  opened = [];
});
afterEach(async () => {
  for (const sandbox of opened) await sandbox.teardown();
  scratch.remove();
});

async function open(opts: SandboxOptions): Promise<Sandbox> {
  const sandbox = await createLocalSandbox(opts);
  opened.push(sandbox);
  return sandbox;
}

async function run(sandbox: Sandbox, script: string): Promise<string> {
  const { exitCode, stdout, stderr } = await sandbox.shell(script);
  if (exitCode !== 0) throw new Error(`${script}: ${stderr}`);
  return stdout;
}

const LOOK = `find . -path ./.git -prune -o -type f -printf '%P %m\\n' -exec sha256sum -b {} + | sort; find . -type l -printf '%P %l\\n' | sort`;

describe("forks", () => {
  test("have every file and the commits made inside, on branches of their own, and go their own way", async () => {
    const origin = await open({ repo, branch: "work" });
    await run(
      origin,
      `printf 1 > one; git add one; git commit -qm one; printf x > new; chmod 600 new; mkdir ignored; printf y > ignored/y; ln -s /etc/passwd link
      printf z > "$(printf 'b\\377')"; git init -q nested; printf n > nested/n; printf 'crlf\\r\\n' > crlf; rm sub/b.txt`,
    );
    const before = await run(origin, LOOK);
    const forks = await origin.fork({ count: 2 });
    opened.push(...forks);
    for (const fork of forks) {
      expect(await run(fork, LOOK)).toBe(before);
      expect(await run(fork, "git log --format=%s -2; git status --porcelain | head -3; git fsck --no-dangling")).toBe(
        await run(origin, "git log --format=%s -2; git status --porcelain | head -3"),
      );
      expect((await fork.changes()).files).toEqual((await origin.changes()).files);
    }
    expect(git(repo, "for-each-ref", "--format=%(refname:short)", "refs/heads").split("\n")).toEqual([
      "main",
      "other",
      "work",
      "work-fork-1",
      "work-fork-2",
    ]);
    expect(await Promise.all(forks.map((fork) => run(fork, "git symbolic-ref --short HEAD")))).toEqual([
      "work-fork-1\n",
      "work-fork-2\n",
    ]);
    const [first, second] = forks as [Sandbox, Sandbox];
    await run(first, "printf mine > new; git add new; git commit -qm mine");
    expect(await run(second, "cat new; git log -1 --format=%s")).toBe("xone\n");
    expect(await origin.readFile("new")).toBe("x");
    await origin.teardown();
    git(repo, "gc", "--quiet", "--prune=now");
    expect(await run(first, "git fsck --no-dangling; git log --format=%s -2")).toBe("mine\none\n");
    for (const fork of forks) await fork.teardown();
    expect(git(repo, "for-each-ref", "--format=%(refname)").split("\n")).toEqual([
      "refs/heads/main",
      "refs/heads/other",
      "refs/tags/v1",
    ]);
    expect(git(repo, "fsck", "--strict", "--no-progress", "--no-dangling")).toBe("");
  });

  test("of a fork, and of one whose branch is taken", async () => {
    git(repo, "branch", "work-fork-1");
    const origin = await open({ repo, branch: "work" });
    const fork = await origin.fork();
    opened.push(fork);
    const second = await fork.fork();
    opened.push(second);
    expect(await run(second, "git symbolic-ref --short HEAD")).toBe("work-fork-2-fork-1\n");
  });

  test.each<[string, () => SandboxOptions]>([
    ["an empty sandbox", () => ({})],
    ["a directory of the user's", () => ({ baseDir: repo })],
    ["a sandbox without isolation", () => ({ repo, branch: "work", isolation: "none" as const })],
  ])("of %s", async (_, opts) => {
    const origin = await open(opts());
    await run(origin, "printf x > x; mkdir -p ignored; printf y > ignored/y");
    const fork = await origin.fork();
    opened.push(fork);
    expect(await run(fork, LOOK)).toBe(await run(origin, LOOK));
    expect(fork.capabilities.isolation).toBe(origin.capabilities.isolation);
    await run(fork, "printf changed > x");
    expect(await origin.readFile("x")).toBe("x");
    await fork.teardown();
    expect(existsSync(fork.hostDir ?? "")).toBe(false);
    expect(await origin.readFile("x")).toBe("x");
  });

  test("none is left when the origin is torn down meanwhile", async () => {
    const origin = await open({ repo, branch: "work" });
    const forks = origin.fork({ count: 5 });
    const outcome = forks.then(
      () => "made",
      (error: { code: string }) => error.code,
    );
    await origin.teardown();
    expect(await outcome).toBe("closed");
    expect(git(repo, "for-each-ref", "--format=%(refname)", "refs/heads")).toBe("refs/heads/main\nrefs/heads/other");
    expect(await listSandboxes()).toEqual([]);
  });

  test("of a repository in the user's directory has a repository of its own", async () => {
    const origin = await open({ baseDir: repo });
    const fork = await origin.fork();
    opened.push(fork);
    await run(fork, "git -c user.name=a -c user.email=b commit -q --allow-empty -m mine");
    expect(git(repo, "log", "-1", "--format=%s")).toBe("second");
  });

  test("all or none: when one fails, nothing of the others stays", async () => {
    git(repo, "branch", "work-fork-3/in-the-way");
    const origin = await open({ repo, branch: "work" });
    const before = [
      git(repo, "for-each-ref"),
      git(repo, "worktree", "list"),
      readdirSync(join(scratch.home, "sandboxes")),
    ];
    await expect(origin.fork({ count: 3 })).rejects.toMatchObject({ code: "conflict" });
    expect([
      git(repo, "for-each-ref"),
      git(repo, "worktree", "list"),
      readdirSync(join(scratch.home, "sandboxes")),
    ]).toEqual(before);
    expect((await listSandboxes()).map(({ id }) => id)).toEqual([origin.id]);
  });
});
