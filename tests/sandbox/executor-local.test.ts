import { access, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { getSandboxExecutor, type SandboxExecutor } from "../../src/sandbox/executor.js";

const home = process.cwd();
let directory: string;
let executor: SandboxExecutor;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "glovebox-executor-"));
  process.chdir(directory);
  executor = getSandboxExecutor();
});

afterEach(async () => {
  await executor.cleanup();
  process.chdir(home);
  await rm(directory, { recursive: true, force: true });
});

const inSandbox = (...parts: string[]): string => join(directory, ".sandbox", ...parts);

describe("execute", () => {
  test("[S5-TEST-local-execute-allowed] should execute allowed commands", async () => {
    expect(await executor.execute("echo", ["hello", "$HOME"])).toMatchObject({ stdout: "hello $HOME\n", exitCode: 0 });
  });

  test("[S5-TEST-local-execute-disallowed] should reject disallowed commands", async () => {
    await expect(executor.execute("shutdown", ["now"])).rejects.toMatchObject({ code: "command_not_allowed" });
    await expect(executor.execute("/bin/echo", ["x"])).rejects.toMatchObject({ code: "command_not_allowed" });
    await expect(executor.execute("echo x", [])).rejects.toMatchObject({ code: "command_not_allowed" });
  });

  test("[S5-TEST-local-execute-timeout] should handle command timeout", async () => {
    const result = await executor.execute("sleep", ["30"], { timeout: 200 });
    expect(result.exitCode).not.toBe(0);
    expect(result.stderr).toMatch(/timed out/);
  });

  test("[S5-TEST-local-execute-result] [S5-AC-1] should return stdout, stderr, exitCode", async () => {
    expect(await executor.execute("printf", ["%s", "out"])).toEqual({ stdout: "out", stderr: "", exitCode: 0 });
    const failed = await executor.execute("ls", ["missing-file"]);
    expect(failed.stderr).toContain("missing-file");
    expect(failed.exitCode).toBeGreaterThan(0);
  });

  test("cwd and env are those of the call", async () => {
    await executor.writeFile("sub/file", "x");
    expect((await executor.execute("ls", [], { cwd: "sub" })).stdout).toBe("file\n");
    const script = "process.stdout.write(process.env.GREETING ?? 'none')";
    expect((await executor.execute("node", ["-e", script], { env: { GREETING: "hi" } })).stdout).toBe("hi");
  });
});

describe("writeFile", () => {
  test("[S5-TEST-local-write-file] should write file to sandbox directory", async () => {
    await executor.writeFile("note.txt", "hello");
    expect(await readFile(inSandbox("note.txt"), "utf8")).toBe("hello");
    await executor.writeFile("bytes.bin", Buffer.from([0, 255]));
    expect(await readFile(inSandbox("bytes.bin"))).toEqual(Buffer.from([0, 255]));
  });

  test("[S5-TEST-local-write-parents] should create parent directories", async () => {
    await executor.writeFile("a/b/c.txt", "deep");
    expect(await readFile(inSandbox("a", "b", "c.txt"), "utf8")).toBe("deep");
  });

  test("refuses to leave the directory", async () => {
    await expect(executor.writeFile("../escape.txt", "bad")).rejects.toMatchObject({ code: "path_confinement" });
    await expect(access(join(directory, "escape.txt"))).rejects.toMatchObject({ code: "ENOENT" });
  });
});

describe("readFile", () => {
  test("[S5-TEST-local-read-file] should read file from sandbox", async () => {
    await executor.writeFile("note.txt", "grüße");
    expect(await executor.readFile("note.txt")).toBe("grüße");
  });

  test("[S5-TEST-local-read-missing] should return null for non-existent file", async () => {
    expect(await executor.readFile("missing.txt")).toBeNull();
  });
});

describe("listFiles", () => {
  test("[S5-TEST-local-list-files] should list files in sandbox", async () => {
    await executor.writeFile("b.txt", "");
    await executor.writeFile("a/inner.txt", "");
    expect(await executor.listFiles()).toEqual(["a", "b.txt"]);
    expect(await executor.listFiles("a")).toEqual(["inner.txt"]);
  });

  test("[S5-TEST-local-list-empty] should return empty array when sandbox is empty", async () => {
    expect(await executor.listFiles()).toEqual([]);
    expect(await executor.listFiles("missing")).toEqual([]);
  });
});

describe("cleanup", () => {
  test("[S5-TEST-local-cleanup-removes] should remove all files from sandbox", async () => {
    await executor.writeFile("a/b.txt", "x");
    await executor.cleanup();
    expect(await readdir(inSandbox())).toEqual([]);
  });

  test("[S5-TEST-local-cleanup-recreates] should recreate empty sandbox directory", async () => {
    await executor.writeFile("a.txt", "x");
    await executor.cleanup();
    expect(await executor.listFiles()).toEqual([]);
    await executor.writeFile("again.txt", "usable");
    expect(await readFile(inSandbox("again.txt"), "utf8")).toBe("usable");
  });
});
