import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Changes } from "../../../../contracts/types.js";
import { createLocalSandbox } from "../../../../src/sandbox/backends/local.js";
import type { Sandbox } from "../../../../src/sandbox/types.js";
import { createRepository, createScratch, git, type Scratch } from "../../../support/scratch.js";

let scratch: Scratch;
let repo: string;
let worktree: Sandbox;

beforeAll(async () => {
  scratch = createScratch();
  repo = createRepository(join(scratch.path, "repo"));
  for (const path of [
    "deep/a/one",
    "deep/a/two",
    "deep/b/three",
    "whole/x",
    "whole/y/z",
    "plain",
    "gone",
    "kept.log",
  ]) {
    mkdirSync(dirname(join(repo, path)), { recursive: true });
    writeFileSync(join(repo, path), `${path}\n`);
  }
  writeFileSync(join(repo, ".gitignore"), "*.log\nout/\n");
  git(repo, "add", "--force", "--all");
  git(repo, "commit", "-qm", "files");
  worktree = await createLocalSandbox({ repo, workspace: "worktree" });
});
afterAll(async () => {
  await worktree.teardown();
  scratch.remove();
});

/** What the layer holds of each is of another kind: a file, a whiteout, a directory that hides or that was moved. */
const DONE: Readonly<Record<string, string>> = {
  nothing: ":",
  edited: "echo more >> deep/a/one",
  "a mode": "chmod +x plain",
  deleted: "rm gone deep/b/three",
  "a directory deleted": "rm -r whole",
  "a directory deleted and made anew": "rm -r whole && mkdir -p whole/y && echo new > whole/y/other",
  "a directory deleted and made anew, empty": "rm -r whole && mkdir whole",
  "a directory renamed": "mv deep/a deep/renamed",
  "a directory replaced by a file": "rm -r whole && echo file > whole",
  "a directory replaced by a link": "rm -r whole && ln -s deep whole",
  "a file replaced by a directory": "rm plain && mkdir plain && echo in > plain/in",
  "a file replaced by an empty directory": "rm plain && mkdir plain",
  "a new directory": "mkdir -p new/er && echo 1 > new/er/1 && echo 2 > new/2",
  "new and gone again": "echo x > fresh && rm fresh && mkdir d && echo x > d/x && rm -r d",
  "ignored only": "mkdir out && echo x > out/x && echo x > deep/a/x.log",
  "ignored and not": "echo x > deep/a/x.log && echo x > deep/a/x.txt && echo more >> kept.log",
  "what git does not store": "mkfifo pipe && mkdir -p empty/dir && echo x > plain.txt",
  "odd names": "echo x > ':(top)' && echo x > '*' && echo x > \"$(printf 'new\\nline')\" && echo x > -- && rm gone",
  "a repository of its own": "git init -q deep/a/own && echo x > deep/a/own/file && echo y > deep/b/y",
  "more than are worth naming": 'for i in $(seq 250); do echo "$i" > "deep/b/$i"; done; rm deep/a/one',
};

/** The files as they were; a layer would remember what was done to it, a worktree does not. */
const RESET = "find . -mindepth 1 -maxdepth 1 ! -name .git -exec rm -rf {} + && git reset -q --hard";

test.each(Object.entries(DONE))("the changes of an overlay are those of a worktree: %s", async (_, script) => {
  await using overlay = await createLocalSandbox({ repo, workspace: "overlay" });
  const changesAfter = async (sandbox: Sandbox, done: string): Promise<Changes> => {
    const { exitCode, stderr } = await sandbox.shell(done);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    return await sandbox.changes();
  };
  const changes = await changesAfter(overlay, script);
  expect(changes).toEqual(await changesAfter(worktree, `${RESET} && ${script}`));
  const isNone = ["nothing", "new and gone again", "ignored only"].some((name) => DONE[name] === script);
  expect(changes.files.length === 0).toBe(isNone);
});
