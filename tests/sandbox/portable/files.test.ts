import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SandboxError } from "../../../contracts/errors.js";
import { createSandbox } from "../../../src/sandbox/portable.js";
import type { Sandbox } from "../../../src/sandbox/types.js";
import { openPlainDriver, type PlainDriver } from "../../fixtures/plain-driver.js";

let box: Sandbox;
let driver: PlainDriver;
let host: string;

beforeEach(async () => {
  driver = await openPlainDriver();
  box = createSandbox(driver);
  host = await mkdtemp(join(tmpdir(), "glovebox-host-"));
});

afterEach(async () => {
  await box.teardown();
  await rm(host, { recursive: true, force: true });
});

const codeOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    (value) => ({ value }),
    (error: unknown) => (error instanceof SandboxError ? error.code : error),
  );

describe("files", () => {
  test("text and bytes come back exactly; a missing file is null", async () => {
    const bytes = Uint8Array.from({ length: 256 }, (_, index) => index);
    await box.writeFile("deep/er/a.bin", bytes);
    await box.writeFile("a.txt", "\ufeffgrüß €");
    expect(await box.readBytes("deep/er/a.bin")).toEqual(bytes);
    expect(await box.readFile("a.txt")).toBe("\ufeffgrüß €");
    expect(await box.readFile(join(box.workDir, "a.txt"))).toBe("\ufeffgrüß €");
    expect(await box.readFile("none")).toBeNull();
    expect(await box.readBytes("none")).toBeNull();
    expect(await box.stat("none")).toBeNull();
  });

  test("modes are kept, 0644 when not given", async () => {
    await box.uploadFiles([
      { path: "run.sh", content: "#!/bin/sh\necho ran\n", mode: 0o755 },
      { path: "plain", content: "" },
    ]);
    expect(await box.stat("run.sh")).toMatchObject({ type: "file", mode: 0o755, size: 19 });
    expect(await box.stat("plain")).toMatchObject({ mode: 0o644, size: 0 });
    expect((await box.exec({ argv: ["./run.sh"] })).stdout).toBe("ran\n");
    await box.writeFile("secret", "x", { mode: 0o600 });
    expect(await box.stat("secret")).toMatchObject({ mode: 0o600 });
  });

  test("names are sorted, deleting tells whether there was something", async () => {
    await box.writeFiles({ b: "1", a: "2", "c/d": "3" });
    expect(await box.listDirectory()).toEqual(["a", "b", "c"]);
    expect(await box.listDirectory("c")).toEqual(["d"]);
    expect(await box.deleteFile("a")).toBe(true);
    expect(await box.deleteFile("a")).toBe(false);
    expect(await codeOf(box.deleteFile("c"))).toBe("not_regular_file");
    expect(await codeOf(box.listDirectory("none"))).toBe("not_found");
    await box.makeDirectory("x/y");
    await box.makeDirectory("x/y");
    expect(await box.stat("x/y")).toMatchObject({ type: "directory" });
  });

  test("a list of files with one that leads outside writes none", async () => {
    const call = box.uploadFiles([
      { path: "good", content: "1" },
      { path: "../bad", content: "2" },
    ]);
    await expect(call).rejects.toThrow("path confinement violation: ../bad is outside base directory");
    expect(await box.listDirectory()).toEqual([]);
  });

  test("the work directory is where commands and relative paths start", async () => {
    await box.makeDirectory("sub/inner");
    await box.setWorkdir("sub");
    await box.writeFile("here", "1");
    expect(await box.readFile(join(box.workDir, "sub/here"))).toBe("1");
    expect((await box.exec({ argv: ["pwd"] })).stdout.trim()).toBe(join(box.workDir, "sub"));
    expect((await box.exec({ argv: ["pwd"], cwd: "inner" })).stdout.trim()).toBe(join(box.workDir, "sub/inner"));
    expect((await box.exec({ argv: ["pwd"], cwd: ".." })).stdout.trim()).toBe(box.workDir);
    expect(await codeOf(box.setWorkdir("../.."))).toBe("path_confinement");
    expect(await codeOf(box.setWorkdir("none"))).toBe("not_found");
    expect(await codeOf(box.setWorkdir("here"))).toBe("invalid_path");
    expect(await codeOf(box.exec({ argv: ["pwd"], cwd: "none" }))).toBe("not_found");
    await box.setWorkdir(box.workDir);
    expect(await box.listDirectory()).toEqual(["sub"]);
  });

  test("a link is a work directory only when a directory inside is behind it", async () => {
    await box.makeDirectory("real");
    await symlink("real", join(box.workDir, "inside"));
    await symlink(host, join(box.workDir, "outside"));
    await box.setWorkdir("inside");
    expect(await codeOf(box.setWorkdir(join(box.workDir, "outside")))).toBe("path_confinement");
  });

  const bad: [name: string, path: unknown, code: string][] = [
    ["above", "../x", "path_confinement"],
    ["absolute", "/etc/passwd", "path_confinement"],
    ["hidden above", "a/../../x", "path_confinement"],
    ["empty", "", "invalid_path"],
    ["NUL", "a\0b", "invalid_path"],
    ["long", "a/".repeat(2500), "invalid_path"],
    ["long in bytes", "€".repeat(1500), "invalid_path"],
    ["number", 5, "invalid_argument"],
    ["nothing", null, "invalid_argument"],
  ];
  test.each(bad)("a path that is bad in every operation: %s", async (_name, path, code) => {
    const asPath = path as string;
    for (const call of [
      box.readFile(asPath),
      box.readBytes(asPath),
      box.stat(asPath),
      box.writeFile(asPath, "x"),
      box.uploadFiles([{ path: asPath, content: "x" }]),
      box.listDirectory(asPath),
      box.deleteFile(asPath),
      box.makeDirectory(asPath),
      box.setWorkdir(asPath),
      box.exportDirectory(asPath, join(host, "out")),
      box.refreshFromHost(host, asPath),
    ]) {
      expect(await codeOf(call)).toBe(code);
    }
    expect(await readdir(box.workDir)).toEqual([]);
    expect(await readdir(host)).toEqual([]);
  });

  test("bad contents, modes and options are refused before anything is written", async () => {
    for (const call of [
      box.writeFile("a", 5 as never),
      box.writeFile("a", "x", { mode: 0o4755 }),
      box.writeFile("a", "x", { mode: -1 }),
      box.writeFile("a", "x", { mod: 0o600 } as never),
      box.uploadFiles("a" as never),
      box.uploadFiles([{ path: "a" } as never]),
      box.uploadFiles([{ path: "a", content: "x", owner: "me" } as never]),
      box.writeFiles(null as never),
      box.writeFiles({ a: 5 as never }),
      box.restore(5 as never),
      box.fork({ count: 0 }),
    ]) {
      expect(await codeOf(call)).toBe("invalid_argument");
    }
    expect(await readdir(box.workDir)).toEqual([]);
  });

  test("what the driver does not have is unsupported", async () => {
    const files = [box.snapshot(), box.restore("a"), box.fork(), box.changes()];
    for (const call of [...files, box.pushBranch("topic", "token"), box.defaultBranch(), box.url(80)]) {
      expect(await codeOf(call)).toBe("unsupported");
    }
  });

  test("an operation that is never answered ends at the deadline", async () => {
    driver.read = () => new Promise(() => undefined);
    const slow = createSandbox(driver, { operationTimeout: 50 });
    await expect(slow.readFile("a")).rejects.toMatchObject({ code: "unavailable", operation: "readFile" });
  });
});

describe("directories in and out", () => {
  test("a tree goes in and comes out the same", async () => {
    await mkdir(join(host, "in/sub"), { recursive: true });
    await writeFile(join(host, "in/sub/a.bin"), Buffer.from([0, 255, 10]));
    await writeFile(join(host, "in/run.sh"), "echo", { mode: 0o755 });
    await box.writeFiles({ "into/old": "stays", "into/run.sh": "replaced" });
    await box.refreshFromHost(join(host, "in"), "into");
    expect(await box.listDirectory("into")).toEqual(["old", "run.sh", "sub"]);
    expect(await box.readFile("into/run.sh")).toBe("echo");
    const out = await box.exportDirectory("into", join(host, "new/out"));
    expect(out).toBe(join(host, "new/out"));
    expect([...(await readFile(join(out, "sub/a.bin")))]).toEqual([0, 255, 10]);
    expect((await readdir(out)).toSorted()).toEqual(["old", "run.sh", "sub"]);
  });

  test("nothing is written over what the host has", async () => {
    await box.writeFile("d/a", "1");
    await writeFile(join(host, "file"), "mine");
    expect(await codeOf(box.exportDirectory("d", host))).toBe("conflict");
    expect(await codeOf(box.exportDirectory("d", join(host, "file")))).toBe("conflict");
    expect(await readFile(join(host, "file"), "utf8")).toBe("mine");
    await mkdir(join(host, "empty"));
    await box.exportDirectory("d", join(host, "empty"));
    expect(await readdir(join(host, "empty"))).toEqual(["a"]);
  });

  test("what is missing or no directory is said", async () => {
    await box.writeFile("file", "1");
    await writeFile(join(host, "file"), "1");
    expect(await codeOf(box.exportDirectory("none", join(host, "out")))).toBe("not_found");
    expect(await codeOf(box.exportDirectory("file", join(host, "out")))).toBe("invalid_path");
    expect(await codeOf(box.refreshFromHost(join(host, "none"), "x"))).toBe("not_found");
    expect(await codeOf(box.refreshFromHost(join(host, "file"), "x"))).toBe("invalid_path");
    expect(await readdir(host)).toEqual(["file"]);
  });

  test("a broken export leaves nothing behind, and an empty directory empty", async () => {
    await box.writeFile("d/a", "1".repeat(20_000));
    const whole = driver.exportTree.bind(driver);
    driver.exportTree = async function* (path) {
      for await (const chunk of whole(path)) {
        yield chunk.subarray(0, 1500);
        throw new SandboxError("backend_lost", "the channel broke");
      }
    };
    expect(await codeOf(box.exportDirectory("d", join(host, "out")))).toBe("backend_lost");
    await mkdir(join(host, "empty"));
    expect(await codeOf(box.exportDirectory("d", join(host, "empty")))).toBe("backend_lost");
    expect(await readdir(host)).toEqual(["empty"]);
    expect(await readdir(join(host, "empty"))).toEqual([]);
  });

  test("an export that never goes on ends at the deadline", async () => {
    await box.makeDirectory("d");
    driver.exportTree = async function* () {
      await new Promise(() => undefined);
      yield new Uint8Array(0);
    };
    const slow = createSandbox(driver, { operationTimeout: 100 });
    expect(await codeOf(slow.exportDirectory("d", join(host, "out")))).toBe("unavailable");
  });
});
