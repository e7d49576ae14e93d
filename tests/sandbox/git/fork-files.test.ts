import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createLocalSandbox } from "../../../src/sandbox/backends/local.js";
import { listIndexPaths } from "../../../src/sandbox/git/commit/changed-paths.js";
import { readSandboxHead } from "../../../src/sandbox/git/live-tree/sandbox-head.js";
import { replicateTree } from "../../../src/sandbox/git/snapshot/replicate.js";
import type { Sandbox, SandboxOptions } from "../../../src/sandbox/types.js";
import { listSandboxes } from "../../../src/sandbox.js";
import { createRepository, createScratch, git, type Scratch } from "../../support/scratch.js";

let scratch: Scratch;
beforeAll(() => {
  scratch = createScratch();
});
afterAll(() => scratch.remove());

/** Names, kinds, modes, targets and bytes of everything but the git directory at the top. */
const LOOK = `find . -path ./.git -prune -o ! -type s ! -type p ! -type d -printf '%P|%y %m %l\\0' -o -type d -printf '%P|%y %m\\0' | sort -z | tr '\\0\\n' '\\n?'
find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 sha256sum -b`;

async function run(sandbox: Sandbox, script: string): Promise<string> {
  const { exitCode, stdout, stderr } = await sandbox.shell(script);
  if (exitCode !== 0) throw new Error(`${script}: ${stderr}`);
  return stdout;
}

/** A repository with something of every kind, and a place outside that one of its links leads to. */
function createMixed(name: string): { repo: string; outside: string } {
  const repo = createRepository(join(scratch.path, name));
  const outside = join(scratch.path, `${name}-outside`);
  mkdirSync(outside);
  writeFileSync(join(outside, "canary"), "untouched");
  for (const path of ["becomes-directory", "becomes-link", "becomes-fifo", "gone", "tool", "hidden", "same-second"]) {
    writeFileSync(join(repo, path), `${path}\n`);
  }
  for (const path of ["becomes-file", "gone-directory/deep", "emptied", "own-repository", "untouched"]) {
    mkdirSync(join(repo, path), { recursive: true });
    writeFileSync(join(repo, path, "x"), `${path}\n`);
  }
  symlinkSync(outside, join(repo, "link-out"));
  symlinkSync("gone", join(repo, "link"));
  git(repo, "add", "--all");
  git(repo, "update-index", "--add", "--cacheinfo", `160000,${git(repo, "rev-parse", "HEAD")},module`);
  git(repo, "commit", "-qm", "mixed");
  return { repo, outside };
}

const CHANGES = `
printf 'emas-dnoces\\n' > same-second
rm becomes-directory; mkdir -p becomes-directory/below; printf d > becomes-directory/below/d
rm -r becomes-file; printf f > becomes-file
rm becomes-link; ln -s /etc/passwd becomes-link
rm becomes-fifo; mkfifo becomes-fifo another-fifo
rm gone; rm -r gone-directory; rm emptied/x
rm link-out; mkdir link-out; printf mine > link-out/canary
rm link; ln -s elsewhere link
chmod 700 tool; mkdir -m 0700 private-directory
printf n > "$(printf 'line\\nend')"; printf i > "$(printf 'inv\\377alid')"; printf m > -n; printf q > 'q"u\\o*te '
mkdir -p ignored/deep empty/emptier; printf y > ignored/deep/y
git init -q own-repository; git init -q new-repository; printf r > new-repository/r
mkdir -p module; printf s > module/s
printf 'neddih\\n' > hidden
git update-index --assume-unchanged hidden; git update-index --skip-worktree same-second
long=$(printf 'n%.0s' $(seq 200)); mkdir -p $long/$long/$long; printf l > $long/$long/$long/$long
`;

describe.each<[string, SandboxOptions]>([
  ["worktree", {}],
  ["copy", { workspace: "copy" }],
  ["worktree, not confined", { isolation: "none" }],
])("a fork of a %s", (name, opts) => {
  test.concurrent("holds every file as it is, whatever became of it, and nothing else", async () => {
    const { repo, outside } = createMixed(name.replace(/\W+/g, "-"));
    await using origin = await createLocalSandbox({ repo, branch: `${name.length}-mixed`, ...opts });
    await run(origin, CHANGES);
    const [first, second] = (await origin.fork({ count: 2 })) as [Sandbox, Sandbox];
    await using _first = first;
    await using _second = second;
    const before = await run(origin, LOOK);
    expect(before).toContain("line?end|f 644");
    expect(before).toContain("own-repository/.git|d");
    expect(await run(first, LOOK)).toBe(before);
    expect(await run(second, LOOK)).toBe(before);
    expect(readdirSync(first.hostDir ?? "")).not.toContain("becomes-fifo");
    // Not confined, the origin goes by the index in which it was told to pass over files.
    if (opts.isolation !== "none") expect((await first.changes()).files).toEqual((await origin.changes()).files);
    expect(readFileSync(join(outside, "canary"), "utf8")).toBe("untouched");
    expect(await run(first, "git status --porcelain hidden same-second")).toBe(" M hidden\n M same-second\n");
  });
});

test.concurrent("only what differs is written: the index of a fork belongs to the rest", async () => {
  const { repo } = createMixed("index");
  await using origin = await createLocalSandbox({ repo, branch: "index" });
  await run(origin, "printf changed > tool; rm gone; printf new > new");
  await using fork = await origin.fork();
  const index = join(repo, ".git", "worktrees", (fork.hostDir ?? "").split("/").at(-1) ?? "", "index");
  const listed = await listIndexPaths(index, git(repo, "rev-parse", "HEAD^{tree}"), fork.hostDir ?? "");
  expect(
    Buffer.from(listed ?? [])
      .toString()
      .split("\0")
      .filter(Boolean)
      .sort(),
  ).toEqual(["gone", "module", "new", "tool"]);
});

test.concurrent("settings of the user that changed since do not change the files of a fork", async () => {
  const repo = createRepository(join(scratch.path, "settings"));
  await using origin = await createLocalSandbox({ repo });
  git(repo, "config", "core.autocrlf", "true");
  await using fork = await origin.fork();
  await using fresh = await createLocalSandbox({ repo });
  expect(await fresh.readFile("a.txt")).toBe("one more\r\n");
  expect(await fork.readFile("a.txt")).toBe("one more\n");
});

test.concurrent("an inside that hides its commits loses them, and no file", async () => {
  const repo = createRepository(join(scratch.path, "hiding"));
  await using origin = await createLocalSandbox({ repo });
  const base = git(repo, "rev-parse", "HEAD");
  await run(origin, `printf mine > a.txt; git commit -qam mine; printf '${base}\\n' > /glovebox/git/HEAD`);
  await using fork = await origin.fork();
  expect(await run(fork, "cat a.txt; git log -1 --format=%s; git status --porcelain")).toBe("minesecond\n M a.txt\n");
});

test.concurrent.each([
  ["a link", "rm HEAD; ln -s /etc/passwd HEAD"],
  ["a name that leads out", "printf 'ref: ../../../../../../../etc/hostname\\n' > HEAD"],
  ["no file", "rm HEAD; mkdir HEAD"],
])("a head that is %s stops nobody, and is told", async (name, script) => {
  const repo = createRepository(join(scratch.path, `head-${name.replaceAll(" ", "-")}`));
  const warnings: string[] = [];
  await using origin = await createLocalSandbox({
    repo,
    onEvent: (event) => void warnings.push(JSON.stringify(event)),
  });
  await run(origin, `printf mine > a.txt; cd /glovebox/git; ${script}`);
  await using fork = await origin.fork();
  expect(await run(fork, "cat a.txt; git log -1 --format=%s")).toBe("minesecond\n");
  expect(warnings.join("\n")).toContain("commits of the sandbox are left out");
});

test.concurrent("a file that is larger than a copy may be is refused, and nothing stays", async () => {
  const repo = createRepository(join(scratch.path, "large"));
  await using origin = await createLocalSandbox({ repo });
  await run(origin, "truncate -s 9G large");
  await expect(origin.fork()).rejects.toMatchObject({
    code: "limit_exceeded",
    message: expect.stringContaining("large"),
  });
  const ids = (await listSandboxes()).map(({ id }) => id);
  expect(git(repo, "for-each-ref", "--format=%(refname)", "refs/heads").match(/-fork-/)).toBeNull();
  expect(ids).toContain(origin.id);
});

// Everybody else can only open a directory of his own.
test.runIf(process.getuid?.() === 0)("a file of the user's that the inside may not read is in no fork", async () => {
  const baseDir = join(scratch.path, "foreign");
  mkdirSync(baseDir);
  chownSync(baseDir, 12_345, 12_345);
  writeFileSync(join(baseDir, "secret"), "not yours", { mode: 0o600 });
  await using origin = await createLocalSandbox({ baseDir });
  expect((await origin.exec({ argv: ["cat", "secret"] })).exitCode).not.toBe(0);
  await expect(origin.fork()).rejects.toMatchObject({ code: "permission_denied" });
});

describe("replicating", () => {
  test("goes by bytes, whatever sizes and times say", async () => {
    const [from, to] = ["from", "to"].map((name) => join(scratch.path, "bytes", name)) as [string, string];
    for (const [dir, text] of [
      [from, "now"],
      [to, "old"],
    ] as const) {
      mkdirSync(dir, { recursive: true });
      for (const name of ["small", "large"]) {
        writeFileSync(join(dir, name), name === "small" ? text : `${"x".repeat(200_000)}${text}`);
        utimesSync(join(dir, name), 1_700_000_000, 1_700_000_000);
      }
      writeFileSync(join(dir, "same"), "same");
    }
    const { ino } = lstatSync(join(to, "same"));
    await replicateTree(from, to);
    expect(readFileSync(join(to, "small"), "utf8")).toBe("now");
    expect(readFileSync(join(to, "large"), "utf8").slice(-5)).toBe("xxnow");
    expect(lstatSync(join(to, "same")).ino).toBe(ino);
  });

  test("never follows a link of either side, and spares one name at the top", async () => {
    const place = join(scratch.path, "links");
    const [from, to, outside] = ["from", "to", "outside"].map((name) => join(place, name)) as [string, string, string];
    for (const dir of [join(from, "real"), to, outside]) mkdirSync(dir, { recursive: true });
    writeFileSync(join(outside, "canary"), "untouched");
    writeFileSync(join(from, "real", "canary"), "mine");
    writeFileSync(join(from, "file"), "mine");
    symlinkSync(outside, join(from, "link"));
    symlinkSync(outside, join(to, "real"));
    symlinkSync(join(outside, "canary"), join(to, "file"));
    mkdirSync(join(to, "link"));
    mkdirSync(join(from, "spared"));
    mkdirSync(join(from, "real", "spared"));
    writeFileSync(join(to, "spared"), "stays");
    await replicateTree(from, to, { spared: "spared" });
    expect(readFileSync(join(outside, "canary"), "utf8")).toBe("untouched");
    expect(readlinkSync(join(to, "link"))).toBe(outside);
    expect(lstatSync(join(to, "real")).isDirectory()).toBe(true);
    expect(readFileSync(join(to, "file"), "utf8")).toBe("mine");
    expect(readFileSync(join(to, "spared"), "utf8")).toBe("stays");
    expect(existsSync(join(to, "real", "spared"))).toBe(true);
  });

  test("keeps modes, not set-id bits, and fills what nobody may write to", async () => {
    const [from, to] = ["from", "to"].map((name) => join(scratch.path, "modes", name)) as [string, string];
    for (const dir of [join(from, "closed"), to]) mkdirSync(dir, { recursive: true });
    writeFileSync(join(from, "closed", "x"), "x");
    writeFileSync(join(from, "tool"), "same");
    writeFileSync(join(to, "tool"), "same");
    chmodSync(join(from, "tool"), 0o4751);
    chmodSync(join(from, "closed"), 0o555);
    await replicateTree(from, to);
    const modes = ["tool", "closed", "closed/x"].map((name) => (lstatSync(join(to, name)).mode & 0o7777).toString(8));
    expect(modes).toEqual(["751", "555", "644"]);
    for (const dir of [from, to]) chmodSync(join(dir, "closed"), 0o755);
  });

  test("a missing directory and one that is too large are typed errors", async () => {
    const [from, to] = ["from", "to"].map((name) => join(scratch.path, "errors", name)) as [string, string];
    mkdirSync(join(from, "deep"), { recursive: true });
    await expect(replicateTree(from, to)).rejects.toMatchObject({ code: "not_found" });
    mkdirSync(to);
    writeFileSync(join(from, "deep", "file"), "");
    truncateSync(join(from, "deep", "file"), 9 * 1024 ** 3);
    await expect(replicateTree(from, to)).rejects.toMatchObject({
      code: "limit_exceeded",
      message: expect.stringContaining("deep/file"),
    });
    expect(existsSync(join(to, "deep", "file"))).toBe(false);
  });
});

test("a head is told by plain files alone", async () => {
  const dir = join(scratch.path, "heads");
  const sha = "0123456789".repeat(4);
  mkdirSync(join(dir, "refs", "heads"), { recursive: true });
  const told = async (head: string): Promise<string | undefined> => {
    writeFileSync(join(dir, "HEAD"), head);
    return await readSandboxHead(dir);
  };
  writeFileSync(join(dir, "refs", "heads", "main"), `${sha}\n`);
  writeFileSync(join(scratch.path, "outside-head"), `${sha}\n`);
  symlinkSync("main", join(dir, "refs", "heads", "link"));
  symlinkSync(scratch.path, join(dir, "refs", "out"));
  execFileSync("mkfifo", [join(dir, "refs", "heads", "fifo")]);
  expect(await told(`${sha}\n`)).toBe(sha);
  expect(await told("ref: refs/heads/main\n")).toBe(sha);
  for (const head of [
    ...["", sha, `${sha}\n\n`, `${sha}0\n`, "ref: refs/heads/none\n", "ref: refs/heads/link\n"],
    ...["ref: refs/out/outside-head\n", "ref: ../outside-head\n", `ref: ${join(scratch.path, "outside-head")}\n`],
    ...["ref: refs/heads/fifo\n", "ref: refs/heads\n", "ref: HEAD\n"],
  ]) {
    expect([head, await told(head)]).toEqual([head, undefined]);
  }
});
