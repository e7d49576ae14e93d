import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createLocalSandbox } from "../src/sandbox/local.js";
import { createRepository, createScratch, git, type Scratch } from "./support/scratch.js";

let scratch: Scratch;
let repo: string;

beforeAll(() => {
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
});
afterAll(() => scratch.remove());

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

test.each(Object.entries(DONE))("the changes of an overlay are those of a worktree: %s", async (_, script) => {
  const [overlay, worktree] = await Promise.all(
    (["overlay", "worktree"] as const).map(async (workspace) => {
      await using sandbox = await createLocalSandbox({ repo, workspace });
      const { exitCode, stderr } = await sandbox.shell(script);
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
      return await sandbox.changes();
    }),
  );
  expect(overlay).toEqual(worktree);
  const isNone = ["nothing", "new and gone again", "ignored only"].some((name) => DONE[name] === script);
  expect(overlay?.files.length === 0).toBe(isNone);
});
