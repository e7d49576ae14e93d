import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ownerTag } from "../../../src/machine/owner.js";
import { createLocalSandbox } from "../../../src/sandbox/backends/local.js";
import type { Sandbox, SandboxOptions } from "../../../src/sandbox/types.js";
import { deleteSnapshot, listSandboxes, reap, removeSandbox } from "../../../src/sandbox.js";
import { openMirrored } from "../../support/git/mirrored.js";
import { type GitServer, serveEvil, serveGit, type Trick } from "../../support/git/server.js";
import { createRemote, createRepository, createScratch, git, type Scratch } from "../../support/scratch.js";

const TOKEN = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";

let scratch: Scratch;
let origin: string;
let remote: string;
let server: GitServer;
let evil: GitServer;
let trick: Trick;
let repo: string;
let opened: Sandbox[];
beforeEach(async () => {
  scratch = createScratch({ ownEtc: true });
  origin = createRepository(join(scratch.path, "origin"));
  remote = createRemote(join(scratch.path, "remotes", "project.git"), origin, "--tags", "main", "other");
  trick = () => false;
  server = await serveGit(join(scratch.path, "remotes"), TOKEN, (request, response) => trick(request, response));
  evil = await serveEvil();
  repo = `${server.origin}/project.git`;
  opened = [];
});
afterEach(async () => {
  for (const sandbox of opened) await sandbox.teardown();
  await server.close();
  await evil.close();
  scratch.remove();
});

async function open(opts: SandboxOptions = {}): Promise<Sandbox> {
  const sandbox = await createLocalSandbox({ repo, githubToken: TOKEN, ...opts });
  opened.push(sandbox);
  return sandbox;
}

async function run(sandbox: Sandbox, script: string): Promise<string> {
  const { exitCode, stdout, stderr } = await sandbox.shell(script);
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
  return stdout;
}

function clones(): string[] {
  const dir = join(scratch.home, "clones");
  return existsSync(dir) ? readdirSync(dir).map((name) => join(dir, name)) : [];
}

/** As if the clone had been used an hour ago. */
function age(): void {
  const then = Date.now() / 1000 - 3600;
  for (const dir of clones()) utimesSync(dir, then, then);
}

describe("a repository by its URL", () => {
  test.each(["worktree", "overlay", "copy"] as const)(
    "has its files and is pushed to, workspace %s",
    async (workspace) => {
      const sandbox = await open({ branch: "work", workspace });
      expect(
        await run(sandbox, "git log --format=%s; git branch -a --list 'origin/*'; cat a.txt; git status --porcelain"),
      ).toBe("second\nfirst\n  remotes/origin/main\n  remotes/origin/other\none more\n");
      await run(sandbox, "printf one > one; git add -A; git commit -qm inside; printf two > two");
      expect((await sandbox.changes()).files.map(({ path }) => path)).toEqual(["one", "two"]);
      expect(await sandbox.defaultBranch()).toBe("main");
      expect(await sandbox.pushBranch("work", TOKEN)).toEqual({ pushed: true });
      expect(git(remote, "log", "--format=%s", "work").split("\n").slice(1)).toEqual(["inside", "second", "first"]);
      await sandbox.teardown();
      const again = await open({ branch: "work", workspace });
      expect(await run(again, "cat one two; git rev-parse HEAD")).toBe(`onetwo${git(remote, "rev-parse", "work")}\n`);
      expect(clones()).toHaveLength(1);
      expect(readFileSync(join(clones()[0] ?? "", "config"), "utf8")).not.toContain(TOKEN.slice(0, 12));
    },
  );

  test("starts from a branch of the remote's as it is now, wherever an earlier sandbox left it", async () => {
    const first = await open({ branch: "other" });
    expect(await run(first, "cat a.txt; printf mine > mine")).toBe("one\n");
    expect(await first.pushBranch("other", TOKEN)).toEqual({ pushed: true });
    await first.teardown();
    git(origin, "push", "--quiet", "--force", remote, "main:other");
    const second = await open({ branch: "other" });
    expect(await run(second, "cat a.txt; git log -1 --format=%s; git branch --show-current")).toBe(
      "one more\nsecond\nother\n",
    );
    await expect(open({ branch: "other" })).rejects.toMatchObject({ code: "conflict" });
    await second.teardown();
    git(remote, "branch", "-D", "other");
    const third = await open({ branch: "other" });
    expect(await run(third, "git log -1 --format=%s; git branch -a --list 'origin/*'")).toBe(
      "second\n  remotes/origin/main\n",
    );
  });

  test("several at once ask the remote less often than each for itself, and later ones see what is new", async () => {
    await Promise.all([1, 2, 3, 4, 5, 6].map(() => open({ workspace: "overlay" })));
    const fetches = server.requests.filter(({ method }) => method === "POST").length;
    expect(clones()).toHaveLength(1);
    expect(fetches).toBeLessThan(12);
    writeFileSync(join(origin, "a.txt"), "newer\n");
    git(origin, "commit", "--quiet", "-am", "newer");
    git(origin, "push", "--quiet", remote, "main");
    expect(await (await open({ workspace: "overlay" })).readFile("a.txt")).toBe("newer\n");
  });

  test("also in a sandbox that the host cannot look into", async () => {
    const sandbox = await openMirrored(scratch.path, { repo, branch: "work", githubToken: TOKEN });
    opened.push(sandbox);
    await run(sandbox, "printf one > one");
    expect(await sandbox.pushBranch("work", TOKEN)).toEqual({ pushed: true });
    expect(git(remote, "show", "work:one")).toBe("one");
  });

  test("of a file, in another object format too", async () => {
    const other = createRepository(join(scratch.path, "sha256"), "--object-format=sha256");
    const sandbox = await open({ repo: `file://${other}` });
    expect(await run(sandbox, "git log -1 --format=%s; cat a.txt")).toBe("second\none more\n");
    await expect(sandbox.pushBranch("work", TOKEN)).rejects.toMatchObject({ code: "invalid_argument" });
    expect(git(other, "for-each-ref", "refs/glovebox")).toBe("");
  });

  test("by ssh, which is never asked a question", async () => {
    const bin = join(scratch.path, "bin");
    mkdirSync(bin);
    // What ssh would do there: run the command that git gives it.
    writeFileSync(
      join(bin, "ssh"),
      `#!/bin/sh\nprintf '%s\\n' "$*" >> ${scratch.path}/ssh.log\nfor last; do :; done\nexec sh -c "$last"\n`,
    );
    chmodSync(join(bin, "ssh"), 0o755);
    const before = process.env["PATH"] ?? "";
    process.env["PATH"] = `${bin}${delimiter}${before}`;
    try {
      for (const address of [`ssh://git@example.invalid${remote}`, `git@example.invalid:${remote}`]) {
        const sandbox = await open({ repo: address, workspace: "copy" });
        expect(await sandbox.readFile("a.txt")).toBe("one more\n");
      }
      expect(readFileSync(join(scratch.path, "ssh.log"), "utf8")).toContain("-oBatchMode=yes");
    } finally {
      process.env["PATH"] = before;
    }
  });

  test("an empty one, without isolation, and a branch that is none are refused", async () => {
    const empty = join(scratch.path, "remotes", "empty.git");
    mkdirSync(empty);
    git(empty, "init", "--quiet", "--bare");
    await expect(open({ repo: `${server.origin}/empty.git` })).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("no commit yet"),
    });
    await expect(open({ isolation: "none" })).rejects.toMatchObject({ code: "unsupported" });
    expect(clones()).toEqual([]);
    expect(await listSandboxes()).toEqual([]);
  });
});

describe("the token", () => {
  test("is not sent where the remote leads to, and what the remote says against us has its own code", async () => {
    trick = (request, response) => {
      response.writeHead(301, { Location: `${evil.origin}${request.url ?? ""}` }).end();
      return true;
    };
    await expect(open()).rejects.toMatchObject({
      code: "invalid_argument",
      hint: expect.stringContaining("redirects"),
    });
    expect(evil.requests).toEqual([]);
    trick = () => false;
    await expect(open({ githubToken: "wrong-token-wrong-token" })).rejects.toMatchObject({
      code: "unauthenticated",
      message: expect.not.stringContaining("wrong-token"),
    });
    const without = createLocalSandbox({ repo });
    await expect(without).rejects.toMatchObject({
      code: "unauthenticated",
      hint: expect.stringContaining("githubToken"),
    });
    await expect(open({ repo: `${server.origin}/absent.git` })).rejects.toMatchObject({ code: "not_found" });
    await server.close();
    await expect(open()).rejects.toMatchObject({ code: "unavailable", retryable: true });
    expect(clones()).toEqual([]);
    expect(await listSandboxes()).toEqual([]);
  });
});

describe("the clone in the cache", () => {
  test("goes with reap --cache, together with its checkouts, and not while something needs it", async () => {
    const sandbox = await open({ workspace: "overlay", keep: true });
    await run(sandbox, "printf x > x");
    const id = await sandbox.snapshot();
    await sandbox.teardown();
    age();
    expect((await reap({ cache: 0 })).cache).toEqual([]);
    await removeSandbox(sandbox.id);
    expect((await reap({ cache: 0 })).cache?.filter((path) => path.includes("clones"))).toEqual([]);
    await deleteSnapshot(id);
    const again = await open({ workspace: "overlay" });
    expect((await reap({ cache: 0 })).cache).toEqual([]);
    await again.teardown();
    expect((await reap({ cache: 0 })).cache?.filter((path) => path.includes("clones"))).toEqual([]);
    age();
    expect((await reap({ cache: 0 })).cache).toEqual([expect.stringContaining("clones")]);
    expect(clones()).toEqual([]);
    expect(await (await open({ workspace: "overlay" })).readFile("a.txt")).toBe("one more\n");
  });

  test("gets over what a process that was killed left in it and beside it", async () => {
    await (await open()).teardown();
    const [dir = ""] = clones();
    for (const name of ["refs/remotes/origin/main.lock", "refs/tags/v1.lock", "packed-refs.lock", "HEAD.lock"]) {
      mkdirSync(join(dir, name, ".."), { recursive: true });
      writeFileSync(join(dir, name), "");
    }
    const [place, , start] = ownerTag().split("-");
    const left = join(scratch.home, "clones", `.new.${place}-${2 ** 22 + 1}-${start}.aaaaaaaaaaaa`);
    mkdirSync(join(left, "clone"), { recursive: true });
    writeFileSync(join(origin, "a.txt"), "newer\n");
    git(origin, "commit", "--quiet", "-am", "newer");
    git(origin, "push", "--quiet", remote, "main");
    expect(await (await open()).readFile("a.txt")).toBe("newer\n");
    expect(existsSync(left)).toBe(false);
  });
});

test.each(["ext::sh -c touch% x", "--upload-pack=touch x", "fd::17"])("%s is no repo", async (text) => {
  await expect(createLocalSandbox({ repo: text })).rejects.toMatchObject({ code: "invalid_argument" });
  expect(clones()).toEqual([]);
});
