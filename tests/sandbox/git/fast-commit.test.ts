import { execFileSync } from "node:child_process";
import { chmodSync, lstatSync, mkdirSync, readdirSync, rmSync, symlinkSync, watch, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createRecord } from "../../../src/ledger/records.js";
import { createLocalSandbox } from "../../../src/sandbox/backends/local.js";
import { writeLooseObjects } from "../../../src/sandbox/git/fast-commit/loose-object.js";
import { type FastCommit, makeFastCommit } from "../../../src/sandbox/git/fast-commit/make-fast-commit.js";
import { createJailedGit } from "../../../src/sandbox/git/jailed/jailed-git.js";
import { objectBinds } from "../../../src/sandbox/git/repository/object-store.js";
import { findRepository } from "../../../src/sandbox/git/repository/repository.js";
import { createSnapshot } from "../../../src/sandbox/git/snapshot/create-snapshot.js";
import { warnOfLink } from "../../../src/sandbox/git/snapshot/snapshot-policy.js";
import type { TreeBase } from "../../../src/sandbox/git/source/tree-base.js";
import { addWorktree } from "../../../src/sandbox/git/worktree/worktree.js";
import { madeOnce } from "../../support/run/made-once.js";
import { createScratch, git, type Scratch } from "../../support/scratch.js";

let scratch: Scratch;
beforeAll(() => {
  scratch = createScratch();
});
afterAll(() => scratch.remove());

interface Place {
  path: string;
  base: TreeBase;
  tree: string;
}

let count = 0;
/** Of each kind of repository that was made: the tree of its commit. */
const trees = new Map<string, string>();

/** A worktree whose files are of a commit, as a sandbox has it. */
async function open(files: Readonly<Record<string, string>>, ...initOptions: string[]): Promise<Place> {
  const name = `plain${++count}`;
  const repo = join(scratch.path, `${name}-repo`);
  const kind = JSON.stringify([initOptions, files]);
  madeOnce(kind, repo, () => {
    mkdirSync(repo);
    git(repo, "init", "--quiet", ...initOptions);
    fill(repo, files);
    git(repo, "add", "--all", "--force");
    git(repo, "commit", "--quiet", "--allow-empty", "-m", "base");
    trees.set(kind, git(repo, "rev-parse", "HEAD^{tree}"));
  });
  const path = join(scratch.path, `harness-${name}`);
  await createRecord({ id: name, backend: "local", workDir: path });
  const repository = await findRepository(repo);
  const worktree = await addWorktree({ repository, branch: name, path, record: name });
  const base = { repository, sha: worktree.baseSha, branch: name, index: join(worktree.gitDir, "index") };
  return { path, base, tree: trees.get(kind) ?? "" };
}

function fill(root: string, files: Readonly<Record<string, string>>): void {
  for (const [path, content] of Object.entries(files)) put(root, path, () => writeFileSync(join(root, path), content));
}

/** Whatever is in the way of a path goes. */
function put(root: string, path: string, write: () => void): void {
  const parts = path.split("/");
  for (const at of parts.slice(1).map((_, n) => join(root, ...parts.slice(0, n + 1)))) {
    if (lstatSync(at, { throwIfNoEntry: false })?.isDirectory() !== true) rmSync(at, { force: true });
    mkdirSync(at, { recursive: true });
  }
  rmSync(join(root, path), { recursive: true, force: true });
  write();
}

async function makeFast({ path, base, tree }: Place): Promise<FastCommit | undefined> {
  return await makeFastCommit({ base, tree, root: { source: path }, message: "Snapshot of sandbox plain" });
}

async function storedTree({ base }: Place, { commit, objects }: FastCommit): Promise<string> {
  await writeLooseObjects(base.repository.objects, objects);
  return git(base.repository.gitDir, "rev-parse", `${commit}^{tree}`);
}

/** What git itself makes of the files, and what it leaves out. */
function byGit({ path, base }: Place): { tree: string; others: string } {
  const env = { ...process.env, GIT_INDEX_FILE: join(scratch.path, `index-${++count}`) };
  const script = `alias git='git -c core.excludesFile=/dev/null'
    git read-tree "$1" && git add --all && git write-tree && git ls-files --others --directory`;
  const said = execFileSync("sh", ["-c", script, "sh", base.sha], { cwd: path, env, encoding: "utf8" });
  const [tree = "", ...others] = said.trim().split("\n");
  return { tree, others: others.join("\n") };
}

/** What a jailed git makes of them, by the way that every other change goes. */
async function byJail({ path, base }: Place): Promise<{ tree: string; warnings: readonly string[]; others: string[] }> {
  const { repository, sha: baseSha, index } = base;
  const store = join(scratch.path, `store-${++count}`);
  const others: string[] = [];
  const { commit, warnings } = await createSnapshot({
    sandboxId: "plain",
    store,
    source: { repository, baseSha, ...(index && { index }) },
    runJailedGit: createJailedGit({ store, tree: { source: path }, objects: objectBinds(repository) }),
    withOthers: true,
    beside: async (made) => void others.push(...made.others),
  });
  return { tree: git(repository.gitDir, "rev-parse", `${commit}^{tree}`), warnings, others };
}

const FILES = {
  "a.txt": "one\n",
  "run.sh": "#!/bin/sh\n",
  "dir/x": "x\n",
  "dir/y.log": "kept\n",
  "dir/deep/z": "z\n",
  "dir-e/f": "f\n",
  "other/one": "1\n",
  ".gitignore": "*.log\n/out/\nbuild\n",
};

/** What happens to the files; all of it is committed without a git. */
const PLAIN: Readonly<Record<string, (root: string) => void>> = {
  nothing: () => undefined,
  "a file is written, one is made executable, one is deleted": (root) => {
    fill(root, { "a.txt": "two\n" });
    chmodSync(join(root, "run.sh"), 0o755);
    rmSync(join(root, "dir", "x"));
  },
  "a file is touched": (root) => fill(root, { "a.txt": FILES["a.txt"] }),
  "new files and directories, and one that is ignored but known": (root) =>
    fill(root, { new: "n\n", "dir/new": "n\n", "made/deep/er": "n\n", "made/two": "", "dir/y.log": "changed\n" }),
  "a directory goes": (root) => rmSync(join(root, "dir"), { recursive: true }),
  "a directory becomes a file, and a file a directory": (root) =>
    fill(root, { dir: "a file now\n", "a.txt/b": "below\n" }),
  "a directory becomes a link, and a link is new": (root) => {
    put(root, "other", () => symlinkSync("dir", join(root, "other")));
    symlinkSync("/etc/passwd", join(root, "absolute"));
    put(root, "dir/up", () => symlinkSync("../a.txt", join(root, "dir", "up")));
  },
  "names that sort oddly": (root) => fill(root, { "dir.x": "1", dir0: "2", "dir-": "3", di: "4", "dir/deep-": "5" }),
  "names that are odd": (root) =>
    fill(root, {
      ünï: "1",
      'q"uote': "2",
      "a b": "3",
      "-rf": "4",
      ":(top)": "5",
      "*": "6",
      "tab\t": "7",
      "line\nend": "8",
    }),
  "names that only look like git's": (root) =>
    fill(root, { ".github/workflows/x.yml": "1", ".gitkeep": "2", "dir/.gitlab-ci.yml": "3", git: "4" }),
  "an ignore file changes, and nothing falls under it": (root) =>
    fill(root, { "dir/.gitignore": "*.tmp\n", "dir/n": "n" }),
  "bytes that are no text": (root) => fill(root, { "a.txt": "\0\r\n\u00ff$Id$", empty: "" }),
  "all of a directory but one": (root) => rmSync(join(root, "dir", "deep"), { recursive: true }),
};

describe.concurrent("without a git the commit is the same", () => {
  const cases = Object.entries(PLAIN).map(
    ([name, change], n) => [n % 3 === 1 ? "sha256" : "sha1", name, change] as const,
  );
  test.each(cases)("%s: %s", async (format, _, change) => {
    const place = await open(FILES, `--object-format=${format}`);
    change(place.path);
    const made = await makeFast(place);
    if (made === undefined) throw new Error("this is plain");
    const jailed = await byJail(place);
    const warnings = made.links.flatMap(({ path, target }) => warnOfLink(path, target) ?? []);
    expect({ tree: await storedTree(place, made), warnings, others: [] }).toEqual(jailed);
    const commit = git(place.base.repository.gitDir, "cat-file", "commit", made.commit);
    expect(commit.replace(/\d+ \+0000/g, "T")).toBe(
      [
        `tree ${jailed.tree}\nparent ${place.base.sha}`,
        "author Glovebox <glovebox@localhost> T\ncommitter Glovebox <glovebox@localhost> T",
        "\nSnapshot of sandbox plain",
      ].join("\n"),
    );
    expect(git(place.base.repository.gitDir, "fsck", "--strict", "--no-dangling", "--no-progress")).toBe("");
  });
});

/** What has a meaning to git, so that git must say what becomes of it. */
const SPECIAL: Readonly<Record<string, (place: Place) => void>> = {
  "an ignored file": ({ path }) => fill(path, { "x.log": "x" }),
  "a file in an ignored directory": ({ path }) => fill(path, { "out/x": "x" }),
  "a file that a rule further down ignores": ({ path }) => fill(path, { "dir/.gitignore": "n*\n", "dir/new": "x" }),
  "a file that the repository's own rules ignore": ({ path, base }) => {
    writeFileSync(join(base.repository.gitDir, "info", "exclude"), "/local\n");
    fill(path, { local: "x" });
  },
  "an empty directory": ({ path }) => mkdirSync(join(path, "new", "empty"), { recursive: true }),
  "a directory that is left empty": ({ path }) => rmSync(join(path, "other", "one")),
  "a repository of its own": ({ path }) => {
    mkdirSync(join(path, "dir", "own"));
    git(join(path, "dir", "own"), "init", "--quiet");
  },
  "a repository around known files": ({ path }) => void git(join(path, "dir"), "init", "--quiet"),
  "a bare .git": ({ path }) => fill(path, { "dir/.git": "gitdir: /nowhere\n" }),
  ".gitmodules": ({ path }) => fill(path, { ".gitmodules": "[core]\n" }),
  ".gitattributes": ({ path }) => fill(path, { "dir/.gitattributes": "* -text\n" }),
  "a link called .gitignore": ({ path }) =>
    put(path, "dir/.gitignore", () => symlinkSync("x", join(path, "dir/.gitignore"))),
  ".git as another system reads it": ({ path }) => fill(path, { "dir/.Git": "x" }),
  "the short form of it": ({ path }) => fill(path, { "git~1": "x" }),
  "it with what is not seen": ({ path }) => fill(path, { ".g\u200cit": "x" }),
  "it behind a backslash": ({ path }) => fill(path, { "a\\.git": "x" }),
  "a link into a git directory": ({ path }) => symlinkSync(".git/config", join(path, "link")),
  "a file that its owner cannot read": ({ path }) => {
    fill(path, { secret: "x" });
    chmodSync(join(path, "secret"), 0o200);
  },
  "too many files": ({ path }) => {
    for (let n = 0; n < 501; n++) fill(path, { [`many/${n}`]: "" });
  },
  "too many bytes": ({ path }) => fill(path, { large: "x".repeat((8 << 20) + 1) }),
  "line ends that are changed": ({ path, base }) => {
    git(base.repository.gitDir, "config", "core.autocrlf", "true");
    fill(path, { "a.txt": "one\r\n" });
  },
  "modes that do not count": ({ path, base }) => {
    git(base.repository.gitDir, "config", "core.filemode", "false");
    fill(path, { "a.txt": "two\n" });
  },
};

test.concurrent.each(Object.entries(SPECIAL))("left to git: %s", async (_, change) => {
  const place = await open(FILES);
  change(place);
  expect(await makeFast(place)).toBeUndefined();
});

test("attributes are left to git where they have a say, and only there", async () => {
  const place = await open({
    ...FILES,
    ".gitattributes": "* text=auto\n*.id ident\n",
    "dir/.gitattributes": "*.w working-tree-encoding=UTF-16\n",
  });
  fill(place.path, { "a.txt": "two\n", "x.id": "no id\n" });
  const made = await makeFast(place);
  expect(made && (await storedTree(place, made))).toBe((await byJail(place)).tree);
  for (const files of [{ "a.txt": "two\r\n" }, { "x.id": "$Id: x$\n" }, { "dir/t.w": "x" }] as Record<
    string,
    string
  >[]) {
    const [[path, content] = ["", ""]] = Object.entries(files);
    fill(place.path, files);
    expect([path, await makeFast(place)]).toEqual([path, undefined]);
    fill(place.path, { [path]: content.replace(/\r|\$Id/g, "") });
    if (path.startsWith("dir/")) rmSync(join(place.path, path));
  }
  expect(await makeFast(place)).toBeDefined();
});

test("an answer from inside that is none is not believed", async () => {
  const place = await open(FILES);
  const text = (value: string): Buffer => {
    const bytes = Buffer.from(value, "latin1");
    const length = Buffer.alloc(4);
    length.writeUInt32LE(bytes.length);
    return Buffer.concat([length, bytes]);
  };
  const part = (letter: string, path: string, mode: number, content = ""): Buffer => {
    const number = Buffer.alloc(4);
    number.writeUInt32LE(mode);
    return Buffer.concat([Buffer.from(letter), text(path), number, text(content)]);
  };
  const believed = async (...parts: Buffer[]): Promise<boolean> => {
    const { path, base, tree } = place;
    const runGuest = async (): Promise<{ exitCode: number; stdout: Buffer }> => ({
      exitCode: 0,
      stdout: Buffer.concat(parts),
    });
    const root = { source: path };
    return (await makeFastCommit({ base, tree, root, runGuest, message: "x" })) !== undefined;
  };
  const named = part("p", "n", 0);
  expect(await believed(named, part("f", "n", 0o100644, "x"))).toBe(true);
  for (const path of ["", "/n", "n/", "../n", "n/../../x", "./n", "n\0", ".git/hooks/x", "n/.GIT/x"]) {
    expect([path, await believed(named, part("f", path, 0o100644, "x"))]).toEqual([path, false]);
  }
  for (const mode of [0, 0o160000, 0o40000, 0o100777]) expect(await believed(named, part("f", "n", mode))).toBe(false);
  expect(await believed(part("p", "../up", 0))).toBe(false);
  expect(await believed(part("p", "no/such/directory", 0))).toBe(false);
  expect(await believed(named, part("f", "n", 0o100644, "x").subarray(0, -1))).toBe(false);
  expect(await believed(Buffer.from("rubbish that is long enough"))).toBe(false);
});

test("a link to another repository in the commit is left to git", async () => {
  const place = await open(FILES);
  const { gitDir } = place.base.repository;
  const repo = dirname(gitDir);
  git(repo, "update-index", "--add", "--cacheinfo", `160000,${place.base.sha},part`);
  git(repo, "commit", "--quiet", "-m", "part");
  const path = join(scratch.path, "harness-part");
  await createRecord({ id: "part", backend: "local", workDir: path });
  const worktree = await addWorktree({ repository: place.base.repository, branch: "part", path, record: "part" });
  const base = { ...place.base, sha: worktree.baseSha, index: join(worktree.gitDir, "index") };
  expect(await makeFast({ path, base, tree: git(repo, "rev-parse", "HEAD^{tree}") })).toBeUndefined();
});

const NAMES = [
  "a.txt",
  "b.log",
  "dir",
  "dir/x",
  "dir/y.log",
  "dir/deep",
  "dir/deep/z",
  "dir/n",
  "new",
  "new/1",
  "new/2.tmp",
  "build",
  "ünï",
  "[x]",
  "out/o",
  "sub/out",
];
const RULES = [
  "*.log",
  "!*.log",
  "/out/",
  "out",
  "build",
  "dir/n",
  "dir/*",
  "*",
  "new/**",
  "**/z",
  "[a-x]*",
  "\\[x]",
  "n?w",
  "# dir",
  " ",
  "*.tmp ",
  "deep/",
  "!dir",
];
const operation = fc.oneof(
  fc.record({ path: fc.constantFrom(...NAMES), content: fc.constantFrom("", "1\n", "two\n", "\r\n", "\0\n") }),
  fc.record({
    path: fc.constantFrom(".gitignore", "dir/.gitignore"),
    content: fc.array(fc.constantFrom(...RULES), { maxLength: 3 }).map((rules) => rules.join("\n")),
  }),
  fc.record({ path: fc.constantFrom(...NAMES), gone: fc.constant(true) }),
  fc.record({ path: fc.constantFrom(...NAMES), link: fc.constantFrom("a.txt", "../x", "dir") }),
  fc.record({ path: fc.constantFrom("fresh", "dir/fresh"), directory: fc.constant(true) }),
);

test("whatever is changed: it is left to git, or the same tree", async () => {
  const base = { ...FILES, ".gitignore": "*.log\n" };
  const place = await open(base);
  let [same, left] = [0, 0];
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { maxLength: 6 }), async (operations) => {
      const { path: root } = place;
      for (const name of readdirSync(root)) if (name !== ".git") rmSync(join(root, name), { recursive: true });
      fill(root, base);
      for (const { path, ...what } of operations) {
        if ("gone" in what) put(root, path, () => undefined);
        else if ("directory" in what) put(root, path, () => mkdirSync(join(root, path)));
        else
          put(root, path, () =>
            "link" in what ? symlinkSync(what.link, join(root, path)) : writeFileSync(join(root, path), what.content),
          );
      }
      const made = await makeFast(place);
      if (made === undefined) left++;
      else {
        same++;
        expect({ tree: await storedTree(place, made), others: "" }).toEqual(byGit(place));
      }
    }),
    { numRuns: 60 },
  );
  expect([same > 5, left > 5]).toEqual([true, true]);
});

/** What is done inside, one after the other, and whether git has to look at it. */
const DONE: readonly (readonly [script: string, isLeftToGit: boolean])[] = [
  ["echo more >> a.txt; chmod +x dir/x; rm run.sh; mkdir -p new/er; echo 1 > new/er/1; ln -s a.txt link", false],
  ["rm -r dir; mkdir dir; echo anew > dir/deep; rm link; echo x > a.txt", false],
  ["git checkout -q -b mine; git add -A; git -c user.name=x -c user.email=x@x commit -qm inside", true],
  ["echo after > after; rm -r new", false],
  ["git checkout -q HEAD~1; git checkout -q .; rm dir/y.log", false],
  ["echo y > x.log", true],
];
/** An index of so many is too large to be sent inside. */
const MANY = Object.fromEntries(
  Array.from({ length: 1200 }, (_, n) => [`many/${n % 20}/${"long".repeat(40)}${n}`, `${n}\n`]),
);

test.concurrent.for([
  ["worktree", {}],
  ["overlay", {}],
  ["copy", {}],
  ["worktree", MANY],
  ["overlay", MANY],
] as const)(
  "in a sandbox, snapshots have the tree that git makes inside, on the commit that is checked out there: %s",
  async ([workspace, more], { expect, onTestFinished }) => {
    const { base } = await open({ ...FILES, ...more });
    const repo = dirname(base.repository.gitDir);
    await using sandbox = await createLocalSandbox({ repo, workspace });
    const runtime = join(scratch.home, "sandboxes", sandbox.id);
    const made: string[] = [];
    const watcher = watch(runtime, { persistent: false }, (_, name) => void made.push(name ?? ""));
    onTestFinished(() => watcher.close());
    for (const [n, [script, isLeftToGit]] of DONE.entries()) {
      const run = await sandbox.shell(
        `set -e; ${script}; rm -f /tmp/i; export GIT_INDEX_FILE=/tmp/i; git read-tree HEAD >&2; git add -A >&2
        git write-tree; git rev-parse HEAD`,
      );
      expect(run).toMatchObject({ exitCode: 0 });
      const [tree = "", head] = run.stdout.trim().split("\n");
      made.length = 0;
      const id = await sandbox.snapshot();
      writeFileSync(join(runtime, `mark-${n}`), "");
      await expect.poll(() => made).toContain(`mark-${n}`);
      expect([script, made.some((name) => name.startsWith("store-"))]).toEqual([script, isLeftToGit]);
      const ref = `refs/glovebox/${id.replace(/-(\d+)-[0-9a-f]+$/, "/$1")}`;
      expect([git(repo, "rev-parse", `${ref}^{tree}`), git(repo, "rev-parse", `${ref}^`)]).toEqual([tree, head]);
      const { files } = await sandbox.changes();
      const expected = git(repo, "diff", "--name-only", "-M", base.sha, tree);
      expect(files.map(({ path }) => path).sort()).toEqual(expected.split("\n").filter(Boolean).sort());
    }
  },
);
