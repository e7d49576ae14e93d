import {
  access,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  realpath,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { SandboxEvent } from "../../../contracts/types.js";
import { createLocalSandbox } from "../../../src/sandbox/backends/local.js";
import type { Sandbox } from "../../../src/sandbox/types.js";

let root: string;
let baseDir: string;
let sandbox: Sandbox;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "glovebox-files-"));
  baseDir = join(root, "base");
  await mkdir(baseDir);
  sandbox = await createLocalSandbox({ baseDir });
});

afterEach(async () => {
  await sandbox.teardown();
  await rm(root, { recursive: true, force: true });
});

const OUTSIDE = /outside base directory/;

describe("a local sandbox over a directory", () => {
  test("[S3-AC-1] [S3-AC-2] has the whole interface", () => {
    const methods = [
      ...["exec", "writeFile", "writeFiles", "readFile", "deleteFile", "listDirectory", "setWorkdir"],
      ...["exportDirectory", "refreshFromHost", "teardown"],
    ];
    for (const method of methods) expect(sandbox, method).toHaveProperty(method, expect.any(Function));
  });

  test("[S3-TEST-exec] [S3-AC-5] exec captures stdout, stderr and the exit code", async () => {
    const result = await sandbox.exec({ argv: ["sh", "-c", "echo out; echo err >&2; exit 3"] });
    expect(result).toMatchObject({ exitCode: 3, stdout: "out\n", stderr: "err\n", timedOut: false });
    expect((await sandbox.exec({ argv: ["pwd"] })).stdout.trim()).toBe(sandbox.workDir);
  });

  test("[S3-TEST-read-file] readFile gives the text, and null for what is not there", async () => {
    await writeFile(join(baseDir, "host.txt"), "from the host ü");
    expect(await sandbox.readFile("host.txt")).toBe("from the host ü");
    expect(await sandbox.readFile(join(sandbox.workDir, "host.txt"))).toBe("from the host ü");
    expect(await sandbox.readFile("missing.txt")).toBeNull();
    expect(await sandbox.readFile("missing/missing.txt")).toBeNull();
  });

  test("[S3-TEST-list-directory] listDirectory gives sorted names", async () => {
    await sandbox.writeFiles({ "d/b.txt": "", "d/a.txt": "", "d/.hidden": "", "d/sub/x": "" });
    expect(await sandbox.listDirectory("d")).toEqual([".hidden", "a.txt", "b.txt", "sub"]);
    expect(await sandbox.listDirectory()).toEqual(["d"]);
    await expect(sandbox.listDirectory("missing")).rejects.toMatchObject({ code: "not_found" });
  });

  test("[S3-TEST-set-workdir] [S3-AC-6] setWorkdir moves where commands and relative paths start", async () => {
    await sandbox.makeDirectory("sub/deep");
    await sandbox.setWorkdir("sub");
    expect((await sandbox.exec({ argv: ["pwd"] })).stdout.trim()).toBe(join(sandbox.workDir, "sub"));
    await sandbox.writeFile("here.txt", "x");
    expect(await readFile(join(baseDir, "sub", "here.txt"), "utf8")).toBe("x");
    await sandbox.setWorkdir("deep");
    expect(await sandbox.readFile("../here.txt")).toBe("x");
    await sandbox.setWorkdir(sandbox.workDir);
    expect(await sandbox.listDirectory()).toEqual(["sub"]);
    await expect(sandbox.setWorkdir("..")).rejects.toThrow(OUTSIDE);
    await expect(sandbox.setWorkdir("/etc")).rejects.toThrow(OUTSIDE);
  });

  test("[S3-AC-4] files are written, read, replaced, deleted, and moved in and out as trees", async () => {
    await sandbox.writeFiles({ "tree/one.txt": "1", "tree/two.bin": new Uint8Array([0, 255, 10]) });
    expect(await sandbox.readBytes("tree/two.bin")).toEqual(new Uint8Array([0, 255, 10]));
    await sandbox.writeFile("tree/one.txt", "changed");
    expect(await sandbox.exportDirectory("tree", join(root, "exported"))).toBe(join(root, "exported"));
    expect(await readFile(join(root, "exported", "one.txt"), "utf8")).toBe("changed");
    expect(await sandbox.deleteFile("tree/one.txt")).toBe(true);
    expect(await sandbox.deleteFile("tree/one.txt")).toBe(false);
    await sandbox.refreshFromHost(join(root, "exported"), "again");
    expect(await sandbox.readFile("again/one.txt")).toBe("changed");
  });
});

describe("links in what comes out", () => {
  test("absolute ones into the tree lead into the copy, those that lead elsewhere are left out and told of", async () => {
    const events: SandboxEvent[] = [];
    await using other = await createLocalSandbox({ onEvent: (event) => events.push(event) });
    const made = await other.shell(
      `mkdir -p tree/deep/er beside; printf x > tree/file; cd tree
      ln -s "$PWD/file" deep/er/absolute; ln -s "$PWD" deep/top; ln -s "$PWD/" top; ln -s ../file deep/relative; ln -s nothing dangling
      ln -s /usr/bin/env usr; ln -s ../beside up; ln -s "$PWD/../beside" around; ln -s usr by-usr; ln -s "\${PWD}ish" beside-it
      ln -s deep/top/../../beside twice`,
    );
    expect(made).toMatchObject({ exitCode: 0, stderr: "" });
    const out = await other.exportDirectory("tree", join(root, "out"));
    const names = async (path: string): Promise<string[]> => (await readdir(join(out, path))).sort();
    expect(await names(".")).toEqual(["dangling", "deep", "file", "top"]);
    expect(await names("deep")).toEqual(["er", "relative", "top"]);
    expect(await readlink(join(out, "deep/er/absolute"))).toBe("../../file");
    expect(await readFile(join(out, "deep/er/absolute"), "utf8")).toBe("x");
    expect([await realpath(join(out, "deep/top")), await realpath(join(out, "top"))]).toEqual([out, out]);
    const [warning = ""] = events.filter(({ type }) => type === "warning").map(({ message }) => message);
    expect(warning).toMatch(/^Skipped links that lead out of \S+\/tree: .* and 1 more$/);
    const told = [...warning.matchAll(/"([^"]+)"/g)].map(([, name]) => name);
    expect(told).toHaveLength(5);
    expect(["around", "beside-it", "by-usr", "twice", "up", "usr"]).toEqual(expect.arrayContaining(told));
  });
});

describe("[S3-TEST-write-file] writeFile", () => {
  const cases = [
    { name: "[S3-TEST-write-file-simple] simple file", path: "test.txt", content: "hello world" },
    { name: "[S3-TEST-write-file-nested] nested path", path: "subdir/test.txt", content: "nested" },
    {
      name: "[S3-TEST-write-file-traversal] path traversal attempt",
      path: "../outside.txt",
      content: "malicious",
      refusal: "outside base directory",
    },
  ];
  test.each(cases)("$name", async ({ path, content, refusal }) => {
    if (refusal !== undefined) {
      await expect(sandbox.writeFile(path, content)).rejects.toThrow(refusal);
      await expect(access(join(baseDir, path))).rejects.toMatchObject({ code: "ENOENT" });
      return;
    }
    await sandbox.writeFile(path, content);
    expect(await sandbox.readFile(path)).toBe(content);
    expect(await readFile(join(baseDir, path), "utf8")).toBe(content);
  });
});

describe("[S3-AC-7] security", () => {
  test.each(["../secret", "a/../../secret", "/etc/passwd", ".."])(
    "[S3-TEST-path-traversal] [S3-AC-3] no operation takes %j",
    async (path) => {
      await writeFile(join(root, "secret"), "secret");
      await expect(sandbox.readFile(path)).rejects.toThrow(OUTSIDE);
      await expect(sandbox.readBytes(path)).rejects.toThrow(OUTSIDE);
      await expect(sandbox.writeFile(path, "bad")).rejects.toThrow(OUTSIDE);
      await expect(sandbox.writeFiles({ fine: "x", [path]: "bad" })).rejects.toThrow(OUTSIDE);
      await expect(sandbox.uploadFiles([{ path, content: "bad" }])).rejects.toThrow(OUTSIDE);
      await expect(sandbox.deleteFile(path)).rejects.toThrow(OUTSIDE);
      await expect(sandbox.stat(path)).rejects.toThrow(OUTSIDE);
      await expect(sandbox.listDirectory(path)).rejects.toThrow(OUTSIDE);
      await expect(sandbox.makeDirectory(path)).rejects.toThrow(OUTSIDE);
      await expect(sandbox.setWorkdir(path)).rejects.toThrow(OUTSIDE);
      await expect(sandbox.exec({ argv: ["ls"], cwd: path })).rejects.toThrow(OUTSIDE);
      await expect(sandbox.exportDirectory(path, join(root, "out"))).rejects.toThrow(OUTSIDE);
      await expect(sandbox.refreshFromHost(root, path)).rejects.toThrow(OUTSIDE);
      expect(await readFile(join(root, "secret"), "utf8")).toBe("secret");
      expect(await sandbox.readFile("fine")).toBeNull();
    },
  );

  test("a directory beside, with the same beginning, is outside", async () => {
    await mkdir(`${baseDir}-beside`);
    await expect(sandbox.writeFile(`${sandbox.workDir}-beside/x`, "bad")).rejects.toThrow(OUTSIDE);
  });

  test.each(["host", "inside"])(
    "[S3-TEST-symlink-escape] links made from the %s lead nowhere outside",
    async (maker) => {
      const outside = join(root, "outside");
      await mkdir(outside);
      await writeFile(join(outside, "secret"), "secret");
      const links = { directory: outside, file: join(outside, "secret"), up: "..", absent: join(outside, "new") };
      for (const [name, target] of Object.entries(links)) {
        if (maker === "host") await symlink(target, join(baseDir, name));
        else expect((await sandbox.exec({ argv: ["ln", "-s", target, name] })).exitCode).toBe(0);
      }
      const refused = { code: "path_confinement" };
      for (const path of ["directory/secret", "file", "up/outside/secret"]) {
        await expect(sandbox.readFile(path), `read ${path}`).rejects.toMatchObject(refused);
      }
      for (const path of ["directory/new", "up/outside/new"]) {
        await expect(sandbox.writeFile(path, "bad"), `write ${path}`).rejects.toMatchObject(refused);
      }
      await expect(sandbox.listDirectory("directory")).rejects.toMatchObject(refused);
      await expect(sandbox.deleteFile("directory/secret")).rejects.toMatchObject(refused);
      await expect(sandbox.exec({ argv: ["ls"], cwd: "directory" })).rejects.toMatchObject(refused);
      expect(await readFile(join(outside, "secret"), "utf8")).toBe("secret");
      await expect(access(join(outside, "new"))).rejects.toMatchObject({ code: "ENOENT" });
    },
  );

  test("links that stay inside are followed", async () => {
    await sandbox.writeFile("real/file", "inside");
    await symlink("real", join(baseDir, "alias"));
    expect(await sandbox.readFile("alias/file")).toBe("inside");
  });
});

test("[S3-TEST-concurrent] many operations at one time do not disturb each other", async () => {
  const numbers = Array.from({ length: 24 }, (_, index) => index);
  await Promise.all(
    numbers.map(async (n) => {
      await sandbox.writeFile(`many/${n}.txt`, `content ${n}`);
      const [text, run] = await Promise.all([
        sandbox.readFile(`many/${n}.txt`),
        sandbox.exec({ argv: ["sh", "-c", `cat many/${n}.txt; exit ${n}`] }),
      ]);
      expect(text).toBe(`content ${n}`);
      expect(run).toMatchObject({ exitCode: n, stdout: `content ${n}` });
    }),
  );
  expect(await sandbox.listDirectory("many")).toHaveLength(numbers.length);

  const whole = ["a".repeat(200_000), "b".repeat(200_000)];
  await sandbox.writeFile("shared.txt", whole[0] ?? "");
  await Promise.all(
    numbers.map(async (n) => {
      if (n % 2 === 0) await sandbox.writeFile("shared.txt", whole[n % 4 === 0 ? 0 : 1] ?? "");
      else expect(whole.includes((await sandbox.readFile("shared.txt")) ?? "")).toBe(true);
    }),
  );
});

test("[S3-TEST-npm-workflow] [S3-AC-8] an npm project is written and its test script run", async () => {
  await sandbox.writeFile("package.json", '{ "name": "test", "scripts": { "test": "echo success" } }');
  const result = await sandbox.exec({ argv: ["npm", "test"] });
  expect(result.stderr).toBe("");
  expect(result.exitCode).toBe(0);
  expect(result.stdout).toContain("success");
});
