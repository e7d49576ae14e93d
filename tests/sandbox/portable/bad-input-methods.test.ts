import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createLocalSandbox } from "../../../src/sandbox/backends/local.js";
import type { Sandbox } from "../../../src/sandbox/types.js";
import { expectRefused, LONG } from "../../support/refused.js";
import { createScratch, type Scratch } from "../../support/scratch.js";

describe("arguments of its methods", () => {
  let scratch: Scratch;
  let sandbox: Sandbox;
  beforeAll(async () => {
    scratch = createScratch();
    sandbox = await createLocalSandbox();
  });
  afterAll(async () => {
    await sandbox.teardown();
    scratch.remove();
  });
  afterEach(async () => {
    expect(await sandbox.listDirectory()).toEqual([]);
    expect(await sandbox.processes()).toEqual([]);
  });

  test.each<[object | null, string, string]>([
    [null, "options", "null"],
    [{}, "argv", "undefined"],
    [{ argv: [] }, "argv", "[]"],
    [{ argv: "ls -l" }, "argv", "ls -l"],
    [{ argv: [""] }, "argv[0]", '""'],
    [{ argv: ["ls", 7] }, "argv[1]", "7"],
    [{ argv: ["ls", "a\0b"] }, "argv[1]", "NUL"],
    [{ argv: ["ls"], timeout: -1 }, "timeout", "-1"],
    [{ argv: ["ls"], timeout: 0 }, "timeout", "0"],
    [{ argv: ["ls"], timeout: Number.NaN }, "timeout", "NaN"],
    [{ argv: ["ls"], killGrace: -1 }, "killGrace", "-1"],
    [{ argv: ["ls"], env: { "A-B": "x" } }, "env key", "A-B"],
    [{ argv: ["ls"], maxOutput: -1 }, "maxOutput", "-1"],
    [{ argv: ["ls"], raw: "yes" }, "raw", "yes"],
    [{ argv: ["ls"], check: "yes" }, "check", "yes"],
    [{ argv: ["ls"], output: "mixed" }, "output", "mixed"],
    [{ argv: ["ls"], output: "combined", onStderr: () => undefined }, "onStderr", "combined"],
    [{ argv: ["ls"], stdin: 7 }, "stdin", "7"],
    [{ argv: ["ls"], user: "" }, "user", '""'],
    [{ argv: ["ls"], comand: "x" }, "comand", "comand"],
  ])("exec(%j)", async (options, option, shown) => {
    await expectRefused(sandbox.exec(options as never), "invalid_argument", option, shown);
    if (!/maxOutput|raw|check/.test(option))
      await expectRefused(sandbox.spawn(options as never), "invalid_argument", option);
  });

  test.each<[unknown[], string, string]>([
    [["ls", { timeout: 5 }], "args", "timeout"],
    [["ls", ["a", 7]], "argv[2]", "7"],
    [["", []], "argv[0]", '""'],
    [["ls", ["a\0b"]], "argv[1]", "NUL"],
    [["ls", [], { argv: ["rm"] }], "argv", "argv"],
    [["ls", [], null], "options", "null"],
    [["ls", [], { timeout: -1 }], "timeout", "-1"],
    [[{ argv: ["ls"] }, ["-l"]], "program", "argv"],
    [[{ argv: ["ls"] }, undefined, { timeout: 5 }], "program", "argv"],
    [[undefined], "options", "undefined"],
  ])("exec(...%j)", async (given, option, shown) => {
    const loose = sandbox.exec.bind(sandbox) as (...values: unknown[]) => Promise<unknown>;
    await expectRefused(loose(...given), "invalid_argument", option, shown);
  });

  test("a terminal whose outputs are to be separate", async () => {
    const pty = { cols: 80, rows: 24 };
    const call = sandbox.spawn({ argv: ["true"], pty, output: "separate" });
    await expectRefused(call, "invalid_argument", "separate", "pty");
  });

  test.each(["../x", "/etc/passwd", "a/../../x", "/proc/self/root", "/tmp"])("a path outside: %j", async (path) => {
    const calls: Promise<unknown>[] = [
      sandbox.readFile(path),
      sandbox.readBytes(path),
      sandbox.writeFile(path, ""),
      sandbox.stat(path),
    ];
    calls.push(
      sandbox.deleteFile(path),
      sandbox.makeDirectory(path),
      sandbox.listDirectory(path),
      sandbox.setWorkdir(path),
    );
    calls.push(sandbox.exec({ argv: ["touch", "made"], cwd: path }), sandbox.uploadFiles([{ path, content: "" }]));
    for (const call of calls) await expectRefused(call, "path_confinement", path);
  });

  test.each(["", "a\0b", LONG, `${"d/".repeat(2_500)}x`])("a path that cannot be one (%#)", async (path) => {
    const calls: Promise<unknown>[] = [
      sandbox.readFile(path),
      sandbox.writeFile(path, ""),
      sandbox.stat(path),
      sandbox.makeDirectory(path),
    ];
    calls.push(sandbox.deleteFile(path), sandbox.exec({ argv: ["touch", "made"], cwd: path }));
    for (const call of calls) await expectRefused(call, "invalid_path");
  });

  test("file calls", async () => {
    const loose = sandbox as unknown as Record<string, (...values: unknown[]) => Promise<unknown>>;
    const refused = (name: string, values: unknown[], ...parts: string[]): Promise<void> =>
      expectRefused(loose[name]?.(...values) as Promise<unknown>, "invalid_argument", ...parts);
    await refused("copy", ["a", "a"], "to", "another path");
    await refused("copy", ["a", "a/b"], "to", "inside");
    await refused("rename", ["a", "a/b"], "to", "inside");
    await refused("rename", [".", "b"], "from", "work directory");
    await refused("copy", ["a", sandbox.workDir], "to", "work directory");
    await refused("remove", ["."], "path", "work directory");
    await refused("remove", ["a", { recursve: true }], "recursve");
    await refused("remove", ["a", { recursive: 1 }], "recursive", "1");
    await refused("stat", ["a", { follow: "yes" }], "follow", "yes");
    await refused("listDirectory", [".", { details: 1 }], "details", "1");
    await refused("readStream", ["a", { start: -1 }], "start", "-1");
    await refused("readStream", ["a", { start: 5, end: 4 }], "end", "4");
    await refused("appendFile", ["a", null], "content", "null");
    await refused("appendFile", ["a", "x", { mode: 0o1000 }], "mode", "512");
    await refused("writeFile", ["a", {}], "content", "{}");
    await refused("readFile", ["a", { signal: "now" }], "signal");
    await refused("readFile", ["a", null], "options", "null");
    for (const path of ["../x", "/etc/passwd"]) {
      for (const name of ["appendFile", "readStream", "exists", "remove"])
        await expectRefused(
          loose[name]?.(path, ...(name === "appendFile" ? [""] : [])) as Promise<unknown>,
          "path_confinement",
          path,
        );
      for (const name of ["rename", "copy"]) {
        await expectRefused(loose[name]?.(path, "a") as Promise<unknown>, "path_confinement", path);
        await expectRefused(loose[name]?.("a", path) as Promise<unknown>, "path_confinement", path);
      }
    }
  });

  test("wrong kinds", async () => {
    const loose = sandbox as unknown as Record<string, (...values: unknown[]) => Promise<unknown>>;
    await expectRefused(loose["readFile"]?.(7) as Promise<unknown>, "invalid_argument", "path", "7");
    await expectRefused(loose["writeFile"]?.("a", 7) as Promise<unknown>, "invalid_argument", "content", "7");
    await expectRefused(
      loose["writeFile"]?.("a", "x", { mode: 0o4755 }) as Promise<unknown>,
      "invalid_argument",
      "mode",
    );
    await expectRefused(loose["uploadFiles"]?.({}) as Promise<unknown>, "invalid_argument", "files", "{}");
    await expectRefused(loose["writeFiles"]?.(7) as Promise<unknown>, "invalid_argument", "files", "7");
    await expectRefused(loose["shell"]?.(7) as Promise<unknown>, "invalid_argument", "script", "7");
    await expectRefused(sandbox.exec({ argv: ["true", "x".repeat(3 << 20)] }), "limit_exceeded", "argv");
    await expectRefused(sandbox.exec({ argv: ["true"], cwd: "missing" }), "not_found", "missing");
  });
});
