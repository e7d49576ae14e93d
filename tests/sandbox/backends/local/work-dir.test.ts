import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createLocalSandbox, local } from "../../../../src/sandbox/backends/local.js";
import { createRepository, createScratch, type Scratch } from "../../../support/scratch.js";

let scratch: Scratch;
let repo: string;
beforeAll(() => {
  scratch = createScratch();
  repo = createRepository(join(scratch.path, "repo"));
});
afterAll(() => scratch.remove());

const KINDS = ["worktree", "copy", "overlay"] as const;

test.each(KINDS)("a repository is at the chosen place, and git works there: %s", async (workspace) => {
  await using sandbox = await createLocalSandbox({ repo, workspace, workDir: "/workspace/app" });
  expect(sandbox.workDir).toBe("/workspace/app");
  const said = await sandbox.shell("pwd -P && git rev-parse --show-toplevel && echo new > made && git status --short");
  expect(said.stdout).toBe("/workspace/app\n/workspace/app\n?? made\n");
  expect((await sandbox.changes()).files).toEqual([{ path: "made", status: "added" }]);
  if (workspace === "overlay") expect(sandbox.hostDir).toBeUndefined();
  else expect(readFileSync(join(sandbox.hostDir ?? "", "made"), "utf8")).toBe("new\n");
});

test.each(KINDS)("a fork has the path of its origin inside, and another one on the host: %s", async (workspace) => {
  await using sandbox = await createLocalSandbox({ repo, workspace });
  await sandbox.shell('printf "#!/bin/sh\\ncat %s/word" "$PWD" > tool; chmod +x tool; echo one > word');
  await using fork = await sandbox.fork();
  await using again = await fork.fork();
  for (const each of [fork, again]) {
    expect(each.workDir).toBe(sandbox.workDir);
    await each.writeFile("word", each.id);
    expect((await each.exec({ argv: [`${sandbox.workDir}/tool`] })).stdout).toBe(each.id);
    expect((await each.shell("git status --short")).stdout).toBe("?? tool\n?? word\n");
  }
  expect((await sandbox.exec({ argv: [`${sandbox.workDir}/tool`] })).stdout).toBe("one\n");
  const places = [sandbox, fork, again].map(({ hostDir }) => hostDir);
  expect(new Set(places).size).toBe(workspace === "overlay" ? 1 : 3);
});

test("a fork of a directory of yours has its path inside, and does not touch it", async () => {
  const baseDir = join(scratch.path, "mine");
  mkdirSync(baseDir);
  writeFileSync(join(baseDir, "word"), "one");
  await using sandbox = await createLocalSandbox({ baseDir });
  expect(sandbox.hostDir).toBe(baseDir);
  await using fork = await sandbox.fork();
  await fork.writeFile(join(baseDir, "word"), "two");
  expect(fork.workDir).toBe(baseDir);
  expect(readFileSync(join(baseDir, "word"), "utf8")).toBe("one");
  expect(readFileSync(join(fork.hostDir ?? "", "word"), "utf8")).toBe("two");
});

test("without isolation a place is refused, and a fork has its own", async () => {
  expect(local.capabilities({ isolation: "none" }).workDir).toBe(false);
  const opening = createLocalSandbox({ isolation: "none", workDir: "/workspace" });
  await expect(opening).rejects.toMatchObject({ code: "unsupported", message: expect.stringContaining("/workspace") });
  await using sandbox = await createLocalSandbox({ isolation: "none" });
  await using fork = await sandbox.fork();
  expect(fork.workDir).toBe(fork.hostDir);
  expect(fork.workDir).not.toBe(sandbox.workDir);
});

test("a place in or around a toolchain, or around a mount, is refused before anything is made", async () => {
  const tool = join(scratch.path, "tools", "node");
  mkdirSync(join(tool, "bin"), { recursive: true });
  mkdirSync(join(tool, "lib"));
  const before = process.env["PATH"];
  process.env["PATH"] = `${join(tool, "bin")}:${before}`;
  try {
    for (const workDir of [join(scratch.path, "tools"), join(tool, "lib", "app")]) {
      await expect(createLocalSandbox({ workDir })).rejects.toMatchObject({
        code: "invalid_argument",
        message: expect.stringContaining(tool),
      });
    }
  } finally {
    process.env["PATH"] = before;
  }
  const mounts = [{ source: repo, target: "/workspace/repo" }];
  await expect(createLocalSandbox({ workDir: "/workspace", mounts })).rejects.toMatchObject({
    code: "invalid_argument",
    message: expect.stringContaining("mounts[0].target"),
  });
});

test("a place in the home, below /tmp or with a slash at its end works", async () => {
  for (const workDir of ["/home/sandbox/project/", "/tmp/project", "/srv/a b/ü"]) {
    await using sandbox = await createLocalSandbox({ workDir });
    expect((await sandbox.exec({ argv: ["pwd", "-P"] })).stdout).toBe(`${workDir.replace(/\/$/, "")}\n`);
    expect(existsSync(sandbox.hostDir ?? "")).toBe(true);
  }
});
