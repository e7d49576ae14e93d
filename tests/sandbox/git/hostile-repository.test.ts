import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SandboxError } from "../../../contracts/errors.js";
import { createLocalSandbox } from "../../../src/sandbox/backends/local.js";
import { runRepositoryGit } from "../../../src/sandbox/git/repository/repository-git.js";
import type { Sandbox, SandboxOptions } from "../../../src/sandbox/types.js";
import { listSandboxes } from "../../../src/sandbox.js";
import { createRepository, createScratch, git, type Scratch } from "../../support/scratch.js";

const WORKSPACES = ["worktree", "overlay", "copy"] as const;
const SECRET = "canary-secret-of-the-host";

let scratch: Scratch;
/** A repository that somebody else packed: everything below `.git` is theirs. */
let repo: string;
/** What exists once something of the repository has run on the host. */
let trace: string;
/** A private directory of the host's, laid out as an object store could be. */
let victim: string;

beforeEach(() => {
  scratch = createScratch();
  repo = createRepository(join(scratch.path, "repo"));
  trace = join(scratch.path, "trace");
  victim = join(scratch.path, "victim");
  mkdirSync(join(victim, "pack"), { recursive: true, mode: 0o700 });
  for (const name of ["key", "pack/key"]) writeFileSync(join(victim, name), SECRET, { mode: 0o600 });
});
afterEach(() => scratch.remove());

const inGit = (...parts: string[]): string => join(repo, ".git", ...parts);

/** A shell command that passes its input on and leaves a trace. */
function payload(name: string): string {
  return `sh -c 'echo ${name} >> ${trace}; cat'`;
}

function plant(path: string, text: string, mode = 0o644): void {
  mkdirSync(dirname(inGit(path)), { recursive: true });
  writeFileSync(inGit(path), text, { mode });
  chmodSync(inGit(path), mode);
}

function setConfig(text: string): void {
  appendFileSync(inGit("config"), text);
}

/** Replaces something of the repository by a link to somewhere else. */
function link(path: string, target: string): void {
  rmSync(inGit(path), { recursive: true, force: true });
  mkdirSync(dirname(inGit(path)), { recursive: true });
  symlinkSync(target, inGit(path));
}

/** Lives through what a sandbox does with its repository. */
async function live(opts: SandboxOptions): Promise<string> {
  await using sandbox = await createLocalSandbox(opts);
  const { stdout } = await sandbox.shell("ls; git status --porcelain; echo more > more.txt; echo changed >> a.txt");
  await sandbox.changes();
  const snapshot = await sandbox.snapshot();
  await sandbox.restore(snapshot);
  await using fork = await sandbox.fork();
  await fork.exec({ argv: ["true"] });
  return stdout;
}

/** The code of the error; "opened" when there was none. */
async function codeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return "opened";
  } catch (error) {
    if (error instanceof SandboxError) return error.code;
    throw error;
  }
}

/** Whatever of the host's secrets can be seen inside: everything that a command there can read is searched. */
async function seen(sandbox: Sandbox): Promise<string> {
  const script = `find / -xdev -type f -size -64k -name key 2>/dev/null
    grep -rlsF ${SECRET} /glovebox "$PWD" ${victim} 2>/dev/null; true`;
  return (await sandbox.shell(script)).stdout;
}

/** Opens the repository, unless that is refused, and gives what is seen of the secret. */
async function look(opts: SandboxOptions = {}): Promise<string> {
  try {
    await using sandbox = await createLocalSandbox({ repo, ...opts });
    return await seen(sandbox);
  } catch (error) {
    if (error instanceof SandboxError && error.code !== "internal") return "";
    throw error;
  }
}

describe("nothing that a repository says runs on the host", () => {
  const filter = (kind: string): string =>
    `[filter "evil"]\n\t${kind} = "${payload(kind).replaceAll('"', '\\"')}"\n\trequired = false\n`;

  test.each(WORKSPACES)("settings, hooks and filters, by every way in (%s)", async (workspace) => {
    plant("info/attributes", "* filter=evil diff=evil merge=evil\n");
    plant("included", filter("clean"));
    plant("config.worktree", filter("smudge"));
    plant("hooks-by-setting/post-checkout", `#!/bin/sh\necho hooksPath >> ${trace}\n`, 0o755);
    for (const hook of ["post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc", "fsmonitor"]) {
      plant(`hooks/${hook}`, `#!/bin/sh\necho ${hook} >> ${trace}\n`, 0o755);
    }
    setConfig(`[core]
	hooksPath = ${inGit("hooks-by-setting")}
	fsmonitor = "echo fsmonitor >> ${trace}"
	sshCommand = "echo ssh >> ${trace}"
	alternateRefsCommand = "echo alternateRefs >> ${trace}"
	pager = "echo pager >> ${trace}"
[extensions]
	worktreeConfig = true
[include]
	path = included
${filter("smudge")}
[diff "evil"]
	textconv = "echo textconv >> ${trace}"
	command = "echo diff >> ${trace}"
[merge "evil"]
	driver = "echo merge >> ${trace}"
`);
    await live({ repo, workspace });
    await live({ repo, workspace, branch: "another" });
    expect(existsSync(trace)).toBe(false);
  });

  test.each(WORKSPACES)("a filter that is one long-lived process (%s)", async (workspace) => {
    plant("info/attributes", "* filter=evil\n");
    setConfig(filter("process"));
    expect(await live({ repo, workspace })).toContain("a.txt");
    expect(existsSync(trace)).toBe(false);
  });

  test.each(WORKSPACES)("a remote that missing objects would be fetched from (%s)", async (workspace) => {
    const blob = git(repo, "rev-parse", "HEAD:a.txt");
    rmSync(inGit("objects", blob.slice(0, 2), blob.slice(2)));
    setConfig(`[core]
	repositoryformatversion = 1
[extensions]
	partialClone = evil
[remote "evil"]
	url = ext::sh -c 'echo promisor >> ${trace}'
	promisor = true
	uploadpack = "echo uploadpack >> ${trace}"
[protocol "ext"]
	allow = always
`);
    expect(await codeOf(live({ repo, workspace }))).toBe("unsupported");
    expect(existsSync(trace)).toBe(false);
  });

  test("a repository that was made in a sandbox and exported", async () => {
    const exported = join(scratch.path, "exported");
    {
      await using sandbox = await createLocalSandbox({});
      await sandbox.shell(`git init -q out && cd out && git config user.name n && git config user.email e
        echo one > a.txt && git add -A && git commit -qm one
        git config filter.evil.smudge "sh -c 'echo exported >> ${trace}; cat'"
        echo '* filter=evil' > .git/info/attributes
        printf '#!/bin/sh\\necho hook >> ${trace}\\n' > .git/hooks/post-checkout; chmod +x .git/hooks/post-checkout`);
      await sandbox.exportDirectory("out", exported);
    }
    for (const workspace of WORKSPACES) expect(await live({ repo: exported, workspace })).toContain("a.txt");
    expect(existsSync(trace)).toBe(false);
  });

  test("a filter runs when it is named, as the user's own configuration defines it", async () => {
    const home = join(scratch.path, "user");
    mkdirSync(home);
    const define = (name: string, words: string): string =>
      `[filter "${name}"]\n\tsmudge = "${words}"\n\tclean = tr A-Z a-z\n\trequired = true\n`;
    writeFileSync(join(home, ".gitconfig"), define("shout", "tr a-z A-Z"));
    plant("info/attributes", "*.txt filter=shout\n");
    setConfig(define("shout", `echo repository >> ${trace}; cat`));
    const before = process.env["HOME"];
    process.env["HOME"] = home;
    try {
      const text = git(repo, "show", "HEAD:a.txt");
      for (const workspace of WORKSPACES) {
        await using plain = await createLocalSandbox({ repo, workspace });
        expect((await plain.readFile("a.txt"))?.trim()).toBe(text);
        await using shouting = await createLocalSandbox({ repo, workspace, gitFilters: ["shout"] });
        expect((await shouting.readFile("a.txt"))?.trim()).toBe(text.toUpperCase());
      }
      expect(await codeOf(createLocalSandbox({ repo, gitFilters: ["unknown"] }))).toBe("missing_dependency");
      for (const workspace of WORKSPACES) {
        await using sandbox = await createLocalSandbox({ repo, workspace, gitFilters: ["shout"] });
        // What was not changed is no change, and a snapshot has the bytes that were there.
        expect((await sandbox.changes()).files).toEqual([]);
        await sandbox.writeFile("a.txt", "Mixed\n");
        expect((await sandbox.changes()).files).toEqual([{ path: "a.txt", status: "modified" }]);
        const other = await sandbox.readFile("sub/b.txt");
        const snapshot = await sandbox.snapshot();
        await sandbox.shell("rm -rf a.txt sub");
        await sandbox.restore(snapshot);
        expect([await sandbox.readFile("a.txt"), await sandbox.readFile("sub/b.txt")]).toEqual(["Mixed\n", other]);
        await using fork = await sandbox.fork();
        expect(await fork.readFile("a.txt")).toBe("Mixed\n");
      }
    } finally {
      process.env["HOME"] = before;
    }
    expect(existsSync(trace)).toBe(false);
  });
});

describe("nothing of the host becomes visible through a repository", () => {
  test.each([
    ["an absolute alternate", () => plant("objects/info/alternates", `${victim}\n`)],
    ["an alternate by ..", () => plant("objects/info/alternates", `${inGit("..", "..", "victim")}\n`)],
    ["a relative alternate", () => plant("objects/info/alternates", "../../../victim\n")],
    [
      "an alternate by a link",
      () => {
        link("linked", victim);
        plant("objects/info/alternates", `${inGit("linked")}\n`);
      },
    ],
    [
      "objects as a link",
      () => {
        renameSync(inGit("objects"), join(scratch.path, "objects"));
        execFileSync("cp", ["-a", `${scratch.path}/objects/.`, victim]);
        link("objects", victim);
      },
    ],
    ["packs as a link", () => link("objects/pack", join(victim, "pack"))],
    ["the list of alternates as a link", () => link("objects/info/alternates", join(victim, "key"))],
    ["ignored names as a link", () => link("info/exclude", join(victim, "key"))],
    ["attributes as a link", () => link("info/attributes", join(victim, "key"))],
    ["the list of shallow commits as a link", () => link("shallow", join(victim, "key"))],
    ["packed refs as a link", () => link("packed-refs", join(victim, "key"))],
    ["a directory of the store as a link", () => link("objects/ff", victim)],
    ["a directory beside the store", () => execFileSync("cp", ["-a", victim, inGit("objects", "stray")])],
  ])("%s", async (_, prepare) => {
    git(repo, "gc", "-q");
    prepare();
    for (const workspace of WORKSPACES) expect(await look({ workspace })).toBe("");
  });

  test("another repository, by a .git that leads there, a link or a common directory", async () => {
    const other = createRepository(join(scratch.path, "other"));
    writeFileSync(join(other, "secret.txt"), SECRET);
    git(other, "add", "-A");
    git(other, "commit", "-qm", SECRET);
    const claims = join(scratch.path, "claims");
    const leads: (() => void)[] = [
      () => writeFileSync(join(claims, ".git"), `gitdir: ${join(other, ".git")}\n`),
      () => symlinkSync(join(other, ".git"), join(claims, ".git")),
      () => {
        mkdirSync(join(claims, ".git"));
        writeFileSync(join(claims, ".git", "HEAD"), "ref: refs/heads/main\n");
        writeFileSync(join(claims, ".git", "commondir"), `${join(other, ".git")}\n`);
      },
      () => {
        git(other, "worktree", "add", "-q", join(scratch.path, "linked"));
        writeFileSync(join(claims, ".git"), `gitdir: ${join(other, ".git", "worktrees", "linked")}\n`);
      },
    ];
    for (const lead of leads) {
      rmSync(claims, { recursive: true, force: true });
      mkdirSync(claims);
      lead();
      expect(await codeOf(createLocalSandbox({ repo: claims }))).toBe("tampered");
    }
  });

  test("what a repository has become since is looked at again when a kept sandbox is reopened", async () => {
    const { id } = await keep({ repo });
    renameSync(inGit("objects"), join(scratch.path, "objects"));
    symlinkSync(join(scratch.path, "objects"), inGit("objects"));
    expect(await codeOf(createLocalSandbox({ id }))).toBe("tampered");
  });

  async function keep(opts: SandboxOptions): Promise<{ id: string }> {
    await using sandbox = await createLocalSandbox({ ...opts, keep: true });
    return { id: sandbox.id };
  }

  test("linked worktrees, submodules, alternates of its own and named ones go on working", async () => {
    const read = async (opts: SandboxOptions): Promise<string> => {
      await using sandbox = await createLocalSandbox(opts);
      return (await sandbox.shell("git log --format=%s | head -n 1; git status --porcelain")).stdout;
    };
    const linked = join(scratch.path, "linked");
    git(repo, "worktree", "add", "-q", linked);
    expect(await read({ repo: linked })).toBe("second\n");
    const above = createRepository(join(scratch.path, "above"));
    git(above, "-c", "protocol.file.allow=always", "submodule", "add", "-q", repo, "module");
    expect(await read({ repo: join(above, "module") })).toBe("second\n");
    const separate = join(scratch.path, "separate");
    git(scratch.path, "clone", "-q", `--separate-git-dir=${join(scratch.path, "apart.git")}`, repo, separate);
    // Nothing there says that the two belong together, so the git directory has to be named.
    expect(await codeOf(read({ repo: separate }))).toBe("tampered");
    expect(await read({ repo: join(scratch.path, "apart.git") })).toBe("second\n");
    const borrowing = join(scratch.path, "borrowing");
    git(scratch.path, "clone", "-q", "--shared", repo, borrowing);
    expect(await codeOf(read({ repo: borrowing }))).toBe("permission_denied");
    const gitAlternates = [inGit("objects")];
    for (const workspace of WORKSPACES)
      expect(await read({ repo: borrowing, gitAlternates, workspace })).toBe("second\n");
    expect(await codeOf(read({ repo: borrowing, gitAlternates: [victim] }))).toBe("permission_denied");
    const bare = join(scratch.path, "bare.git");
    git(scratch.path, "clone", "-q", "--bare", repo, bare);
    expect(await read({ repo: bare })).toBe("second\n");
  });
});

describe("a repository that can't be opened leaves no record behind", () => {
  test.each([
    ["a link on the way to our own refs", () => link("refs/glovebox/bases", victim)],
    ["refs in a format that git can't read", () => plant("packed-refs", "\0".repeat(4096))],
    [
      "refs in a storage that git may not know",
      () => {
        plant("reftable/tables.list", "none\n");
        setConfig("[core]\n\trepositoryformatversion = 1\n[extensions]\n\trefStorage = reftable\n");
      },
    ],
  ])("%s", async (_what, damage) => {
    damage();
    for (const workspace of WORKSPACES) await codeOf(live({ repo, workspace }));
    expect(await listSandboxes()).toEqual([]);
  });
});

describe("nothing is written elsewhere through a repository", () => {
  test.each(["refs", "refs/heads", "refs/heads/glovebox", "refs/glovebox", "logs", "logs/refs/heads", "worktrees"])(
    "%s as a link",
    async (path) => {
      const outside = join(scratch.path, "outside");
      mkdirSync(outside);
      if (existsSync(inGit(path))) execFileSync("cp", ["-a", `${inGit(path)}/.`, outside]);
      const before = readdirSync(outside, { recursive: true }).sort();
      link(path, outside);
      for (const workspace of WORKSPACES) expect(await codeOf(live({ repo, workspace }))).toBe("tampered");
      expect(readdirSync(outside, { recursive: true }).sort()).toEqual(before);
    },
  );

  test.each(["HEAD", "config", "packed-refs", "shallow", "info/exclude", "info/attributes", "objects/info/alternates"])(
    "%s as a pipe is refused at once",
    async (path) => {
      rmSync(inGit(path), { force: true });
      mkdirSync(dirname(inGit(path)), { recursive: true });
      execFileSync("mkfifo", [inGit(path)]);
      expect(await codeOf(createLocalSandbox({ repo }))).toBe("tampered");
    },
  );

  test("no ref is written by any git of ours through a link on its way", async () => {
    const outside = join(scratch.path, "outside");
    mkdirSync(outside);
    for (const path of ["refs/heads/deep", "logs/refs/heads/deep"]) {
      link(path, outside);
      const args = ["update-ref", "--create-reflog", "refs/heads/deep/one", git(repo, "rev-parse", "HEAD")];
      expect(await codeOf(runRepositoryGit(args, inGit()))).toBe("tampered");
      rmSync(inGit(path));
    }
    expect(readdirSync(outside)).toEqual([]);
  });

  test("a pipe among the refs, or among the objects, ends the git that waits at it", async () => {
    execFileSync("mkfifo", [inGit("refs", "heads", "evil")]);
    await expect(createLocalSandbox({ repo })).rejects.toMatchObject({
      code: "tampered",
      message: expect.stringContaining("refs/heads/evil"),
    });
    rmSync(inGit("refs", "heads", "evil"));
    const blob = git(repo, "rev-parse", "HEAD:a.txt");
    const object = inGit("objects", blob.slice(0, 2), blob.slice(2));
    rmSync(object);
    execFileSync("mkfifo", [object]);
    for (const workspace of WORKSPACES) expect(await codeOf(createLocalSandbox({ repo, workspace }))).toBe("tampered");
  });
});
