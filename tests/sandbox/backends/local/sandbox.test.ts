import { execFileSync } from "node:child_process";
import { access, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { isAbsolute, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createLocalSandbox } from "../../../../src/sandbox/backends/local.js";

let testRepo: string;

function git(...args: string[]): string {
  const identity = ["-c", "user.name=Test", "-c", "user.email=test@example.com"];
  return execFileSync("git", [...identity, ...args], { cwd: testRepo, encoding: "utf8" });
}

beforeEach(async () => {
  testRepo = await mkdtemp(join(tmpdir(), "harness-test-"));
  git("init", "--quiet", "--initial-branch=main");
  git("commit", "--quiet", "--allow-empty", "-m", "init");
});

afterEach(async () => {
  await rm(testRepo, { recursive: true, force: true });
});

test("[S1-TEST-workdir-in-temp] [S1-AC-2] creates sandbox with workDir in temp directory", async () => {
  const sandbox = await createLocalSandbox({ repo: testRepo, branch: "test-branch" });
  try {
    expect(sandbox.workDir).toContain(tmpdir());
    expect(isAbsolute(sandbox.workDir)).toBe(true);
  } finally {
    await sandbox.teardown();
  }
});

test("[S1-TEST-exec-runs] [S1-AC-3] exec runs command in sandbox", async () => {
  const sandbox = await createLocalSandbox({ repo: testRepo, branch: "test-branch" });
  try {
    const result = await sandbox.exec({
      argv: ["echo", "hello"],
      cwd: sandbox.workDir,
      timeout: 5000,
    });
    expect(result.exitCode).toBe(0);
    expect(result.stdout.trim()).toBe("hello");
  } finally {
    await sandbox.teardown();
  }
});

test("[S1-TEST-exec-cwd-outside] [S1-AC-4] exec rejects cwd outside sandbox", async () => {
  const sandbox = await createLocalSandbox({ repo: testRepo, branch: "test-branch" });
  try {
    await expect(sandbox.exec({ argv: ["ls"], cwd: "/tmp", timeout: 5000 })).rejects.toThrow(/path confinement/i);
  } finally {
    await sandbox.teardown();
  }
});

test("[S1-TEST-exec-timeout] [S1-AC-5] exec handles timeout", async () => {
  const sandbox = await createLocalSandbox({ repo: testRepo, branch: "test-branch" });
  try {
    const result = await sandbox.exec({
      argv: ["sleep", "10"],
      cwd: sandbox.workDir,
      timeout: 100,
    });
    expect(result.timedOut).toBe(true);
  } finally {
    await sandbox.teardown();
  }
});

test("[S1-TEST-upload-writes] [S1-AC-6] uploadFiles writes files", async () => {
  const sandbox = await createLocalSandbox({ repo: testRepo, branch: "test-branch" });
  try {
    await sandbox.uploadFiles([{ path: "test.txt", content: "hello" }]);
    const result = await sandbox.exec({
      argv: ["cat", "test.txt"],
      cwd: sandbox.workDir,
      timeout: 5000,
    });
    expect(result.stdout).toBe("hello");
  } finally {
    await sandbox.teardown();
  }
});

test("[S1-TEST-upload-traversal] [S1-AC-7] uploadFiles rejects path traversal", async () => {
  const sandbox = await createLocalSandbox({ repo: testRepo, branch: "test-branch" });
  try {
    await expect(sandbox.uploadFiles([{ path: "../escape.txt", content: "bad" }])).rejects.toThrow(/path confinement/i);
  } finally {
    await sandbox.teardown();
  }
});

test("[S1-TEST-teardown-idempotent] [S1-AC-10] teardown is idempotent", async () => {
  const sandbox = await createLocalSandbox({ repo: testRepo, branch: "test-branch" });
  await sandbox.teardown();
  await expect(sandbox.teardown()).resolves.not.toThrow();
});

test("[S1-AC-1] the sandbox is a worktree of the repository, on the branch", async () => {
  const sandbox = await createLocalSandbox({ repo: testRepo, branch: "test-branch" });
  try {
    expect(git("worktree", "list", "--porcelain")).toContain("branch refs/heads/test-branch\n");
    expect(git("rev-parse", "test-branch")).toBe(git("rev-parse", "HEAD"));
  } finally {
    await sandbox.teardown();
  }
});

test("[S1-AC-8] snapshot returns a non-empty reference, with and without changes", async () => {
  const sandbox = await createLocalSandbox({ repo: testRepo, branch: "test-branch" });
  try {
    expect(await sandbox.snapshot()).toMatch(/\S/);
    await sandbox.uploadFiles([{ path: "changed.txt", content: "changed" }]);
    expect(await sandbox.snapshot()).toMatch(/\S/);
  } finally {
    await sandbox.teardown();
  }
});

test("[S1-AC-9] teardown removes the worktree and its directory, uncommitted changes or not", async () => {
  const sandbox = await createLocalSandbox({ repo: testRepo, branch: "test-branch" });
  await sandbox.uploadFiles([{ path: "uncommitted.txt", content: "x" }]);
  await sandbox.teardown();
  await expect(access(sandbox.workDir)).rejects.toMatchObject({ code: "ENOENT" });
  expect(git("worktree", "list").trim().split("\n")).toHaveLength(1);
});

test("[S1-AC-12] no shell reads the arguments", async () => {
  const sandbox = await createLocalSandbox({ repo: testRepo, branch: "test-branch" });
  try {
    const argument = "$HOME `id` $(id); echo x | cat > made *";
    expect((await sandbox.exec({ argv: ["echo", argument] })).stdout).toBe(`${argument}\n`);
    expect((await sandbox.exec({ argv: ["echo hello"] })).exitCode).toBe(127);
  } finally {
    await sandbox.teardown();
  }
});
