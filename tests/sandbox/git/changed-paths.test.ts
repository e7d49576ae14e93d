import { mkdirSync, readFileSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createRecord } from "../../../src/ledger/records.js";
import { createLocalSandbox } from "../../../src/sandbox/backends/local.js";
import { listIndexPaths, listLayerPaths } from "../../../src/sandbox/git/commit/changed-paths.js";
import { createJailedGit } from "../../../src/sandbox/git/jailed/jailed-git.js";
import { objectBinds } from "../../../src/sandbox/git/repository/object-store.js";
import { findRepository } from "../../../src/sandbox/git/repository/repository.js";
import { createSnapshot } from "../../../src/sandbox/git/snapshot/create-snapshot.js";
import { addWorktree, type Worktree } from "../../../src/sandbox/git/worktree/worktree.js";
import { createRepository, createScratch, git, type Scratch } from "../../support/scratch.js";

let scratch: Scratch;
beforeAll(() => {
  scratch = createScratch();
});
afterAll(() => scratch.remove());

const FILES = ["a", "a-b", "a.b", "d/x", "d/y/z", "d-e/f", "e/f/g/h", "plain", "same"];

async function open(name: string, ...initOptions: string[]): Promise<Worktree & { repo: string; tree: string }> {
  const repo = createRepository(join(scratch.path, `${name}-repo`), ...initOptions);
  for (const path of FILES.map((file) => join(repo, "files", file))) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `${path}\n`);
  }
  git(repo, "add", "--all");
  git(repo, "update-index", "--add", "--cacheinfo", `160000,${git(repo, "rev-parse", "HEAD")},link`);
  git(repo, "commit", "-qm", "files");
  const path = join(scratch.path, `harness-${name}`);
  await createRecord({ id: name, backend: "local", workDir: path });
  const worktree = await addWorktree({ repository: await findRepository(repo), branch: name, path, record: name });
  return { ...worktree, repo, tree: git(repo, "rev-parse", "HEAD^{tree}") };
}

async function list({ gitDir, tree, path }: Worktree & { tree: string }): Promise<string[] | undefined> {
  const bytes = await listIndexPaths(join(gitDir, "index"), tree, path);
  return bytes && Buffer.from(bytes).toString().split("\0").slice(0, -1).sort();
}

/** A link to another repository is always named: only git can say whether it has changed. */
const ALWAYS = ["link"];

test.each(["sha1", "sha256"])("what differs from an index is named, and nothing else (%s)", async (format) => {
  const opened = await open(format, `--object-format=${format}`);
  const at = (path: string): string => join(opened.path, "files", path);
  expect(await list(opened)).toEqual(ALWAYS);

  const before = statSync(at("same"));
  writeFileSync(at("same"), `${at("same").length}`.padEnd(before.size - 1, "x").concat("\n"));
  utimesSync(at("same"), before.atime, before.mtime);
  rmSync(at("a"));
  rmSync(at("d"), { recursive: true });
  rmSync(at("e/f"), { recursive: true });
  symlinkSync("/etc", at("e/f"));
  rmSync(at("plain"));
  mkdirSync(at("plain"));
  mkdirSync(at("new/deep"), { recursive: true });
  writeFileSync(at("a-"), "");
  mkdirSync(at("d-e/.git"));
  const expected = ["a", "a-", "d", "e/f", "new", "plain", "same"].map((path) => `files/${path}`);
  expect(await list(opened)).toEqual([...expected, ...ALWAYS]);
});

test("a change in the second of the index that keeps size and times, to the nanosecond, is seen by the time of the change", async () => {
  const opened = await open("second");
  const path = join(opened.path, "files", "same");
  // Whether it is in that second is for the clock to say: a few attempts.
  for (let attempt = 0; attempt < 20; attempt++) {
    const content = readFileSync(path);
    // Not now: what is as young as the index git marks, to look at it again.
    const time = 1_000_000_000 + attempt;
    utimesSync(path, time, time);
    git(opened.path, "update-index", "--refresh");
    expect(await list(opened)).toEqual(ALWAYS);
    const before = statSync(path);
    writeFileSync(path, "x".repeat(content.length));
    utimesSync(path, time, time);
    expect(await list(opened)).toEqual(["files/same", ...ALWAYS]);
    const after = statSync(path);
    expect([after.size, after.mtimeMs]).toEqual([before.size, before.mtimeMs]);
    if (Math.floor(after.ctimeMs / 1000) === Math.floor(before.ctimeMs / 1000)) return;
    writeFileSync(path, content);
  }
  throw new Error("no attempt fell into one second");
});

test("an index of another commit, or that git shall pass over files by, says nothing; nor do too many paths", async () => {
  const opened = await open("unsure");
  expect(await list({ ...opened, tree: git(opened.repo, "rev-parse", "HEAD~1^{tree}") })).toBeUndefined();
  for (let n = 0; n < 199; n++) writeFileSync(join(opened.path, `new-${n}`), "");
  expect(await list(opened)).toHaveLength(200);
  writeFileSync(join(opened.path, "new-199"), "");
  expect(await list(opened)).toBeUndefined();
  for (let n = 0; n < 200; n++) rmSync(join(opened.path, `new-${n}`));
  expect(await list(opened)).toEqual(ALWAYS);
  // Written anew, so that the index is one of the tree again.
  const mark = async (option: string): Promise<string[] | undefined> => {
    git(opened.path, "update-index", option, "a.txt");
    git(opened.path, "write-tree", "--missing-ok");
    return await list(opened);
  };
  expect(await mark("--assume-unchanged")).toBeUndefined();
  expect(await mark("--no-assume-unchanged")).toEqual(ALWAYS);
  expect(await mark("--skip-worktree")).toBeUndefined();
});

test("the place of another repository is named as a whole by a layer, too", async () => {
  const lower = join(scratch.path, "lower");
  const layer = join(scratch.path, "layer");
  for (const path of [join(lower, "link"), join(layer, "upper", "link", "deep")]) mkdirSync(path, { recursive: true });
  writeFileSync(join(layer, "upper", "link", "file"), "");
  expect(Buffer.from((await listLayerPaths(lower, layer)) ?? []).toString()).toBe("link\0");
});

test("of the paths that differ, git makes the commit that it makes of all files, without an index of them", async () => {
  const opened = await open("both");
  const repository = await findRepository(opened.repo);
  const nested = join(opened.path, "files", "nested");
  mkdirSync(nested);
  git(nested, "init", "-q");
  git(nested, "commit", "-q", "--allow-empty", "-m", "own");
  // One that the commit knows, at another commit now.
  git(join(opened.path, "link"), "init", "-q");
  git(join(opened.path, "link"), "commit", "-q", "--allow-empty", "-m", "moved");
  for (const name of ["a", 'quote"d', "line\nend", "back\\slash", "tab\t", "ünï", "-n", "*"]) {
    writeFileSync(join(opened.path, "files", name), "new\n");
  }
  writeFileSync(join(opened.path, ".gitignore"), "*.log\n");
  writeFileSync(join(opened.path, "files", "x.log"), "ignored\n");
  rmSync(join(opened.path, "files", "d"), { recursive: true });
  const commit = async (paths: boolean): Promise<{ tree: string; warnings: readonly string[]; verbs: string[] }> => {
    const store = join(scratch.path, `store-${paths}`);
    const objects = objectBinds(repository);
    const run = createJailedGit({ store, tree: { source: opened.path }, objects });
    const verbs: string[] = [];
    const { gitDir, tree } = opened;
    const snapshot = await createSnapshot({
      sandboxId: "both",
      store,
      source: { repository, baseSha: opened.baseSha, index: join(gitDir, "index") },
      runJailedGit: Object.assign(
        (...call: Parameters<typeof run>) => {
          verbs.push(...call[0].filter((word) => ["fast-import", "write-tree"].includes(word)));
          return run(...call);
        },
        { close: async () => await run.close?.() },
      ),
      ...(paths && { changedPaths: () => listIndexPaths(join(gitDir, "index"), tree, opened.path) }),
    });
    return { tree: git(opened.repo, "ls-tree", "-rz", snapshot.commit), warnings: snapshot.warnings, verbs };
  };
  const [quick, full] = [await commit(true), await commit(false)];
  expect(quick).toEqual({ ...full, verbs: ["fast-import"] });
  expect(full.tree).toContain("files/line\nend");
  expect(full.tree).toContain(`160000 commit ${git(opened.repo, "rev-parse", "HEAD:link")}\tlink`);
  expect(full.tree).not.toContain("nested");
  expect(full.warnings.map((text) => text.split('"')[1])).toEqual(["files/nested", "link"]);
});

test.concurrent.each(["worktree", "overlay", "copy"] as const)(
  "a change that keeps the size, in the second of the checkout, is seen: %s",
  async (workspace) => {
    // Whether it is in that second is for the clock to say: a few attempts.
    for (let attempt = 0; attempt < 3; attempt++) {
      const repo = createRepository(join(scratch.path, `${workspace}-${attempt}`));
      await using sandbox = await createLocalSandbox({ repo, workspace });
      const script =
        "stat -c %Y sub/b.txt; printf 'owt\\n' > sub/b.txt; stat -c %Y sub/b.txt; sleep 1.1; git status -s";
      const { stdout } = await sandbox.shell(script);
      expect((await sandbox.changes()).files).toEqual([{ path: "sub/b.txt", status: "modified" }]);
      const id = await sandbox.snapshot();
      expect(git(repo, "show", `refs/glovebox/${id.split("-").slice(0, 2).join("/")}:sub/b.txt`)).toBe("owt");
      const [before, after, status] = stdout.split("\n");
      expect(status).toBe(" M sub/b.txt");
      if (before === after) return;
    }
  },
);
