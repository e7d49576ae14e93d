// node 22: Mastra declares it
import { Agent } from "@mastra/core/agent";
import {
  DirectoryNotEmptyError,
  FileExistsError,
  FileNotFoundError,
  IsDirectoryError,
  NotDirectoryError,
  PermissionError,
  StaleFileError,
  Workspace,
} from "@mastra/core/workspace";
import { describe, expect, test } from "vitest";
import { GloveboxFilesystem, GloveboxSandbox, type GloveboxSandboxOptions } from "../../src/adapters/mastra.js";
import { listSandboxes, removeSandbox } from "../../src/sandbox.js";
import { onEachBackend } from "./backends.js";
import { scriptedLanguageModel } from "./scripted-language-model.js";

const SLEEPERS = "for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $f; echo; done";

onEachBackend(({ options }) => {
  /** A sandbox that is destroyed when the test ends. */
  function create(more: GloveboxSandboxOptions = {}): GloveboxSandbox & AsyncDisposable {
    const sandbox = new GloveboxSandbox({ ...options, ...more });
    return Object.assign(sandbox, { [Symbol.asyncDispose]: async () => await sandbox._destroy() });
  }

  describe("commands", () => {
    test("run by a shell in /workspace, with arguments quoted and variables merged", async () => {
      await using sandbox = create({ env: { A: "1", B: "2" } });
      expect(sandbox.status).toBe("pending");
      const env = { B: "other", C: "3", "not-a-name": "x", NONE: undefined };
      const result = await sandbox.executeCommand("pwd; echo $A $B $C $NONE.; echo", ["a  b", "$A"], { env });
      expect(result).toMatchObject({ success: true, exitCode: 0, stdout: "/workspace\n1 other 3 .\na  b $A\n" });
      expect(sandbox.status).toBe("running");
      expect((await sandbox.executeCommand("pwd", [], { cwd: "/tmp" })).stdout).toBe("/tmp\n");
      expect(await sandbox.executeCommand("echo err >&2; exit 3")).toMatchObject({ exitCode: 3, stderr: "err\n" });
      expect((await sandbox.executeCommand("cat; echo not stuck")).stdout).toBe("not stuck\n");
    });

    test("end at their deadline, with what they wrote and all that they started", async () => {
      await using sandbox = create({ timeout: 2000 });
      const heard: string[] = [];
      const result = await sandbox.executeCommand("echo begun; sleep 1000 & sleep 1000", [], {
        onStdout: (text) => heard.push(text),
      });
      expect(result).toMatchObject({ success: false, exitCode: 124, timedOut: true, stdout: "begun\n" });
      expect(result.stderr).toBe("\nProcess timed out after 2000ms");
      expect(heard.join("")).toBe("begun\n");
      expect((await sandbox.executeCommand(SLEEPERS)).stdout).not.toContain("sleep 1000");
    });

    test("that are aborted return what they wrote, and leave nothing running", async () => {
      await using sandbox = create();
      const aborting = new AbortController();
      const running = sandbox.executeCommand("echo begun; sleep 1000", [], {
        abortSignal: aborting.signal,
        onStdout: () => aborting.abort(),
      });
      expect(await running).toMatchObject({ success: false, killed: true, stdout: "begun\n" });
      const before = await sandbox.executeCommand("sleep 1000", [], { abortSignal: AbortSignal.abort() });
      expect(before).toMatchObject({ success: false, killed: true });
      expect((await sandbox.executeCommand(SLEEPERS)).stdout).not.toContain("sleep 1000");
    });

    test("keep only the end of their output if told so", async () => {
      await using sandbox = create();
      const some = await sandbox.executeCommand("seq 1 5000", [], { maxRetainedBytes: 10 });
      expect(some).toMatchObject({ stdout: "4999\n5000\n", stdoutTruncated: true });
      const all = await sandbox.executeCommand("seq 1 300000");
      expect(all.stdout.length).toBeGreaterThan(1024 * 1024);
      expect(all.stdoutTruncated).toBe(false);
    });
  });

  describe("processes", () => {
    test("take input, are listed, found again and killed", async () => {
      await using sandbox = create();
      const { processes } = sandbox;
      const cat = await processes.spawn("cat; exit 7");
      await cat.sendStdin("through ");
      await cat.sendStdin("ünïcode\n");
      expect(await processes.list()).toEqual([{ pid: cat.pid, command: "cat; exit 7", running: true }]);
      await cat.closeStdin();
      expect(await cat.wait()).toMatchObject({ exitCode: 7, stdout: "through ünïcode\n" });
      await expect(cat.sendStdin("more")).rejects.toThrow(/already exited with code 7/);
      expect(await cat.kill()).toBe(false);
      expect((await processes.get(cat.pid))?.stdout).toBe("through ünïcode\n");
      expect(await processes.get(cat.pid)).toBeUndefined();

      const long = await processes.spawn("sleep 1000 & sleep 1000");
      expect(await processes.kill(long.pid)).toBe(true);
      expect((await long.wait()).killed).toBe(true);
      expect((await sandbox.executeCommand(SLEEPERS)).stdout).not.toContain("sleep 1000");
      expect(await processes.kill("no-such-process")).toBe(false);
    });
  });

  describe("a life", () => {
    test("goes on after a stop with the same files everywhere, but no process", async () => {
      await using sandbox = create();
      await sandbox.executeCommand("echo a > here; echo b > /tmp/there");
      const left = await sandbox.processes.spawn("sleep 1000");
      const { id } = sandbox;
      await Promise.all([sandbox._stop(), sandbox._stop()]);
      expect(sandbox.status).toBe("stopped");
      expect((await left.wait()).killed).toBe(true);
      expect((await sandbox.executeCommand("cat here /tmp/there")).stdout).toBe("a\nb\n");
      expect([sandbox.id, sandbox.status]).toEqual([id, "running"]);
    });

    test("that is kept goes on in another object, as in a later process", async () => {
      const kept = { keep: true as const, name: "kept-by-mastra", ifExists: "reopen" as const };
      const first = new GloveboxSandbox({ ...options, ...kept });
      await first.executeCommand("echo a > here; echo b > /tmp/there");
      const keepsAll = first.sandbox?.capabilities.keep === "all";
      await first._stop();
      expect(first.sandbox).toBeUndefined();
      await using second = create(kept);
      const cat = await second.executeCommand("cat here /tmp/there");
      expect(cat.stdout).toBe(keepsAll ? "a\nb\n" : "a\n");
      await second._stop();
      expect((await second.executeCommand("cat here")).stdout).toBe("a\n");
      await second._destroy();
      expect(await listSandboxes()).toEqual([]);
    });

    test("starts anew if the sandbox was removed behind its back", async () => {
      await using sandbox = create();
      await sandbox.executeCommand("true");
      await sandbox.sandbox?.teardown();
      expect((await sandbox.executeCommand("echo again")).stdout).toBe("again\n");
    });

    test("starts anew if it was kept and then removed", async () => {
      await using sandbox = create({ keep: true });
      await sandbox._start();
      await sandbox.sandbox?.teardown();
      await removeSandbox(sandbox.sandbox?.id ?? "none");
      expect((await sandbox.executeCommand("echo again")).stdout).toBe("again\n");
      await sandbox._stop();
      expect((await sandbox.executeCommand("echo more")).stdout).toBe("more\n");
    });

    test("can't go on with a sandbox of a given id that isn't there any more", async () => {
      const sandboxId = "0123456789abcdef";
      const sandbox = new GloveboxSandbox({ sandboxId, keep: true });
      await expect(sandbox._start()).rejects.toMatchObject({ code: "not_found" });
    });

    test("fails where the sandbox can't be opened, and says why", async () => {
      const sandbox = new GloveboxSandbox({ ...options, limits: { memory: -1 } });
      await expect(sandbox._start()).rejects.toMatchObject({ code: "invalid_argument" });
      expect(sandbox.status).toBe("error");
      await sandbox._destroy();
      await expect(sandbox.executeCommand("true")).rejects.toThrow(/not ready/);
    });

    test("reports itself, and can be copied", async () => {
      await using sandbox = create({ instructions: ({ defaultInstructions }) => `${defaultInstructions} Be brief.` });
      await sandbox._start();
      expect(sandbox.getInfo()).toMatchObject({ id: sandbox.id, provider: "glovebox", status: "running" });
      expect(sandbox.getInstructions()).toBe(
        "Commands run in an isolated sandbox, by bash where there is one, else by /bin/sh, in /workspace. There is no network. Be brief.",
      );
      const copy = sandbox.clone({ id: "copy", env: { COPIED: "yes" } });
      expect((await copy.executeCommand("echo $COPIED")).stdout).toBe("yes\n");
      expect(copy.id).toBe("copy");
      await copy._destroy();
      await sandbox.writeFiles([{ path: "a/b", content: Buffer.from("bulk") }]);
      expect((await sandbox.executeCommand("cat a/b")).stdout).toBe("bulk");
    });
  });

  describe("files", () => {
    test("are the sandbox's, below its work directory", async () => {
      await using sandbox = create();
      const files = new GloveboxFilesystem({ sandbox });
      await files.writeFile("/a/b.txt", "one");
      await files.appendFile("a/b.txt", Buffer.from(" two"));
      expect((await sandbox.executeCommand("cat /workspace/a/b.txt")).stdout).toBe("one two");
      expect(await files.readFile("/workspace/a/b.txt", { encoding: "utf-8" })).toBe("one two");
      expect(await files.readFile("a/b.txt")).toEqual(Buffer.from("one two"));
      await sandbox.executeCommand("printf a > run; chmod 750 run");
      await files.writeFile("run", "b");
      expect((await sandbox.executeCommand("stat -c %a run; cat run; rm run")).stdout).toBe("750\nb");
      await files.copyFile("a", "copy", { recursive: true });
      await files.moveFile("copy/b.txt", "moved/c.md");
      await sandbox.executeCommand("ln -s a link; ln -s nowhere broken");
      expect(await files.readdir("/", { recursive: true })).toEqual([
        { name: "a", type: "directory" },
        { name: "a/b.txt", type: "file", size: 7 },
        { name: "broken", type: "file", isSymlink: true },
        { name: "copy", type: "directory" },
        { name: "link", type: "directory", isSymlink: true },
        { name: "moved", type: "directory" },
        { name: "moved/c.md", type: "file", size: 7 },
      ]);
      expect((await files.readdir("moved", { extension: "txt" })).length).toBe(0);
      expect(await files.stat("a/b.txt")).toMatchObject({ name: "b.txt", path: "a/b.txt", type: "file", size: 7 });
    });

    test("fail with Mastra's own errors", async () => {
      await using sandbox = create();
      const files = new GloveboxFilesystem({ sandbox });
      await files.writeFile("full/file", "x");
      const cases: [() => Promise<unknown>, new (...args: never[]) => Error][] = [
        [() => files.readFile("none"), FileNotFoundError],
        [() => files.readFile("full"), IsDirectoryError],
        [() => files.deleteFile("none"), FileNotFoundError],
        [() => files.deleteFile("full"), IsDirectoryError],
        [() => files.copyFile("none", "x"), FileNotFoundError],
        [() => files.copyFile("full", "x"), IsDirectoryError],
        [() => files.moveFile("none", "x"), FileNotFoundError],
        [() => files.writeFile("full/file", "y", { overwrite: false }), FileExistsError],
        [() => files.writeFile("full/file", "y", { expectedMtime: new Date(0) }), StaleFileError],
        [() => files.rmdir("full"), DirectoryNotEmptyError],
        [() => files.readdir("full/file"), NotDirectoryError],
        [() => files.mkdir("full/file"), FileExistsError],
        [() => files.stat("none"), FileNotFoundError],
        [() => files.readFile("../etc/passwd"), PermissionError],
        [() => new GloveboxFilesystem({ sandbox, readOnly: true }).writeFile("x", ""), PermissionError],
      ];
      for (const [call, type] of cases) await expect(call()).rejects.toBeInstanceOf(type);
      expect(await files.readFile("full/file", { encoding: "utf-8" })).toBe("x");
    });
  });

  test("an agent edits a file and runs a test in the workspace", async () => {
    await using sandbox = create();
    const filesystem = new GloveboxFilesystem({ sandbox });
    await filesystem.writeFile("sum.sh", "echo $(($1 - $2))\n");
    await filesystem.writeFile("test.sh", '[ "$(sh sum.sh 2 3)" = 5 ] && echo green || { echo red; exit 1; }\n');
    const { model, seen } = scriptedLanguageModel([
      ["mastra_workspace_execute_command", { command: "sh test.sh" }],
      ["mastra_workspace_read_file", { path: "sum.sh" }],
      ["mastra_workspace_edit_file", { path: "sum.sh", old_string: "$1 - $2", new_string: "$1 + $2" }],
      ["mastra_workspace_execute_command", { command: "sh test.sh" }],
    ]);
    const workspace = new Workspace({ filesystem, sandbox });
    const agent = new Agent({ id: "fixer", name: "fixer", instructions: "Fix it.", model, workspace } as never);
    await agent.generate("The test is red.", { maxSteps: 10 } as never);
    expect(seen).toHaveLength(4);
    expect(seen[0]).toMatch(/red[\s\S]*Exit code: 1/);
    expect(seen[3]).toContain("green");
    expect(await filesystem.readFile("sum.sh", { encoding: "utf-8" })).toBe("echo $(($1 + $2))\n");
  });
});
