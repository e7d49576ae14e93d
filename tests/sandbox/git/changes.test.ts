import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Changes, SandboxEvent } from "../../../contracts/types.js";
import { createLocalSandbox } from "../../../src/sandbox/backends/local.js";
import type { Sandbox, SandboxOptions } from "../../../src/sandbox/types.js";
import { createRepository, createScratch, git, type Scratch } from "../../support/scratch.js";

let scratch: Scratch;
let repo: string;
let sandbox: Sandbox;
let events: SandboxEvent[];
beforeEach(async () => {
  scratch = createScratch();
  repo = createRepository(join(scratch.path, "repo"));
  events = [];
});
afterEach(async () => {
  await sandbox.teardown();
  scratch.remove();
});

async function open(opts: SandboxOptions = { repo }): Promise<void> {
  sandbox = await createLocalSandbox({ ...opts, onEvent: (event) => events.push(event) });
}

async function changesAfter(script: string): Promise<Changes> {
  const { exitCode, stderr } = await sandbox.shell(script);
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
  return await sandbox.changes();
}

describe("changes", () => {
  test("names what was added, changed, deleted, renamed and made executable, with a patch that applies", async () => {
    await open();
    const { files, patch } = await changesAfter(
      "printf 'x\\n' > new; printf 'changed\\n' > a.txt; mv sub/b.txt sub/c.txt; rm .gitignore; ln -s a.txt link",
    );
    expect(files).toEqual([
      { path: ".gitignore", status: "deleted" },
      { path: "a.txt", status: "modified" },
      { path: "link", status: "added" },
      { path: "new", status: "added" },
      { path: "sub/c.txt", status: "renamed" },
    ]);
    expect(patch).toMatch(/^diff --git a\/\.gitignore b\/\.gitignore\n/);
    const before = git(repo, "for-each-ref");
    const target = createRepository(join(scratch.path, "target"));
    writeFileSync(join(scratch.path, "patch"), patch);
    git(target, "apply", "--index", join(scratch.path, "patch"));
    expect(git(target, "status", "--porcelain").split("\n").sort()).toEqual(
      ["D  .gitignore", "M  a.txt", "A  link", "A  new", "R  sub/b.txt -> sub/c.txt"].sort(),
    );
    expect(git(repo, "for-each-ref")).toBe(before);
  });

  test("nothing at the start; commits made inside count, ignored files do not", async () => {
    await open();
    expect(await sandbox.changes()).toEqual({ patch: "", files: [] });
    const { files } = await changesAfter(
      "mkdir ignored; printf i > ignored/i; printf n > n; git add n; git commit -qm n",
    );
    expect(files).toEqual([{ path: "n", status: "added" }]);
  });

  test("binary files are noted; odd names and bytes come through", async () => {
    await open();
    const { files, patch } = await changesAfter(
      `printf '\\000\\001' > binary; printf 1 > ./-rf; printf 2 > "line
break"; printf 3 > "$(printf 'b\\377d')"; printf '\\351t\\351\\n' > latin`,
    );
    expect(files.map(({ path }) => path)).toEqual(["-rf", "binary", "b\ufffdd", "latin", "line\nbreak"]);
    expect(patch).toContain("GIT binary patch");
    expect(patch).toContain('"b/line\\nbreak"');
  });

  test("leave no object in the user's repository", async () => {
    await open();
    const before = git(repo, "count-objects", "-v");
    await changesAfter("printf secret > kept");
    expect(git(repo, "count-objects", "-v")).toBe(before);
  });

  test("hidden by assume-unchanged, skip-worktree, info/exclude or a replaced object, a change is seen", async () => {
    await open();
    const { files, patch } = await changesAfter(
      `printf 'hidden\\n' > a.txt; git update-index --assume-unchanged a.txt
      printf 'hidden\\n' > sub/b.txt; git update-index --skip-worktree sub/b.txt
      printf 'added\\n' > added; printf 'added\\n' >> "$(git rev-parse --git-path info/exclude)"
      git replace HEAD:a.txt "$(printf 'hidden\\n' | git hash-object -w --stdin)"
      touch -d '2001-01-01' a.txt; git status --porcelain`,
    );
    expect(files.map(({ path }) => path)).toEqual(["a.txt", "added", "sub/b.txt"]);
    expect(patch).toContain("-one more\n+hidden");
  });

  test("nested repositories are told of", async () => {
    await open();
    const { files } = await changesAfter("git init -q nested; printf x > nested/x");
    expect(files).toEqual([]);
    expect(events.filter(({ type }) => type === "warning").map(({ message }) => message)).toEqual([
      expect.stringContaining('"nested"'),
    ]);
  });

  test("are the same without isolation", async () => {
    await open({ repo, isolation: "none" });
    expect(
      (await changesAfter("printf n > n; git add n; git -c user.name=a -c user.email=b commit -qm n")).files,
    ).toEqual([{ path: "n", status: "added" }]);
  });

  test.each<[string, () => SandboxOptions]>([
    ["an empty sandbox", () => ({})],
    ["a directory of the user's", () => ({ baseDir: repo })],
  ])("%s has none to tell of", async (_, opts) => {
    await open(opts());
    expect(sandbox.capabilities.git).toBe(false);
    await expect(sandbox.changes()).rejects.toMatchObject({ code: "unsupported" });
  });
});
