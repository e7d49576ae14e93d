import { createCompute } from "@computesdk/provider";
import { describe, expect, test } from "vitest";
import { glovebox } from "../../src/adapters/computesdk.js";
import type { Sandbox } from "../../src/sandbox/types.js";
import { listSandboxes, listSnapshots } from "../../src/sandbox.js";
import { beats, HEARTBEAT, isStill, onEachBackend } from "./backends.js";

interface Result {
  readonly stdout: string;
  readonly stderr: string;
  readonly exitCode: number;
  readonly durationMs: number;
}

/** What ComputeSDK makes of our provider. */
interface Made {
  readonly sandboxId: string;
  readonly provider: string;
  runCommand(command: string, options?: object): Promise<Result>;
  getInfo(): Promise<object>;
  getUrl(options: object): Promise<string>;
  getInstance(): Sandbox;
  destroy(): Promise<void>;
  readonly filesystem: {
    readFile(path: string): Promise<string>;
    writeFile(path: string, content: string): Promise<void>;
    mkdir(path: string): Promise<void>;
    readdir(path: string): Promise<{ name: string; type: string; size?: number }[]>;
    exists(path: string): Promise<boolean>;
    remove(path: string): Promise<void>;
  };
}

interface Compute {
  readonly sandbox: {
    create(options?: object): Promise<Made>;
    getById(id: string): Promise<Made | null>;
    list(): Promise<Made[]>;
    destroy(id: string): Promise<void>;
  };
}

onEachBackend(({ options }) => {
  const compute = (more = {}) =>
    createCompute({ defaultProvider: glovebox({ ...options, ...more }) }) as unknown as Compute;
  const using = async (work: (sandbox: Made) => Promise<void>, more = {}, create = {}) => {
    const sandbox = await compute(more).sandbox.create(create);
    try {
      await work(sandbox);
    } finally {
      await sandbox.destroy();
    }
  };

  describe("a provider", () => {
    test("creates, finds, lists and destroys", async () => {
      const { sandbox } = compute();
      const made = await sandbox.create({ name: "mine", metadata: { team: "blue", size: 3 }, envs: { WHO: "me" } });
      expect(made.provider).toBe("glovebox");
      expect(made.getInstance()).toMatchObject({ id: made.sandboxId, name: "mine", labels: { team: "blue" } });
      expect(await made.getInfo()).toMatchObject({
        ...{ id: made.sandboxId, provider: "glovebox", status: "running", createdAt: expect.any(Date) as Date },
        ...{ timeout: 600_000, metadata: { team: "blue", workDir: "/workspace" } },
      });
      expect((await made.runCommand("echo $WHO")).stdout).toBe("me\n");
      expect((await sandbox.getById(made.sandboxId))?.sandboxId).toBe(made.sandboxId);
      expect((await sandbox.list()).map(({ sandboxId }) => sandboxId)).toEqual([made.sandboxId]);
      await sandbox.destroy(made.sandboxId);
      await sandbox.destroy(made.sandboxId);
      expect([await sandbox.getById(made.sandboxId), await sandbox.list(), await listSandboxes()]).toEqual([
        null,
        [],
        [],
      ]);
      expect(await made.getInfo()).toMatchObject({ status: "stopped" });
    });

    test("runs commands, also in the background", async () => {
      await using(async (sandbox) => {
        const call = { cwd: "/tmp", env: { WHO: "me" } };
        expect(await sandbox.runCommand("pwd; echo $WHO; echo err >&2; exit 3", call)).toMatchObject({
          ...{ stdout: "/tmp\nme\n", stderr: "err\n", exitCode: 3, durationMs: expect.any(Number) as number },
        });
        expect(await sandbox.runCommand(HEARTBEAT, { background: true })).toMatchObject({ exitCode: 0 });
        await expect.poll(() => beats(sandbox.getInstance())).toBe(true);
        expect(await isStill(sandbox.getInstance())).toBe(false);
        const late = await sandbox.runCommand("echo begun; sleep 1000", { timeout: 2000 });
        expect(late).toMatchObject({ exitCode: 137, stdout: "begun\n" });
        expect(late.stderr).toMatch(/killed at its deadline/);
      });
    });

    test("streams output while a command runs, in whole characters", async () => {
      await using(async (sandbox) => {
        const seen: string[] = [];
        const errors: string[] = [];
        const onStdout = (text: string) => void seen.push(text);
        const running = sandbox.runCommand(
          "printf '\\303'; sleep 1; printf '\\274\\n'; echo err >&2; until test -e go; do sleep 0.1; done; echo end",
          { onStdout, onStderr: (text: string) => void errors.push(text) },
        );
        await expect.poll(() => seen.join("")).toBe("ü\n");
        await sandbox.filesystem.writeFile("go", "");
        const { stdout, stderr } = await running;
        expect([stdout, seen.join(""), stderr, errors.join("")]).toEqual(["ü\nend\n", "ü\nend\n", "err\n", "err\n"]);
      });
    });

    test("has the files of the sandbox", async () => {
      await using(async (made) => {
        const { filesystem } = made;
        await made.getInstance().writeFile("run", "a", { mode: 0o750 });
        await filesystem.writeFile("run", "b");
        expect((await made.getInstance().stat("run"))?.mode).toBe(0o750);
        await filesystem.mkdir("/tmp/a/b");
        await filesystem.writeFile("/tmp/a/f.txt", "text ü");
        expect(await filesystem.readFile("/tmp/a/f.txt")).toBe("text ü");
        expect((await filesystem.readdir("/tmp/a")).map(({ name, type }) => [name, type])).toEqual([
          ["b", "directory"],
          ["f.txt", "file"],
        ]);
        await filesystem.remove("/tmp/a");
        expect(await filesystem.exists("/tmp/a")).toBe(false);
        await expect(filesystem.readFile("/nonexistent/file.txt")).rejects.toThrow(/ENOENT/);
        await expect(filesystem.readdir("missing")).rejects.toMatchObject({ code: "not_found" });
      });
    });

    test("gives addresses of ports", async () => {
      await using(
        async (sandbox) => {
          expect(sandbox.getInstance().published).toEqual([3000]);
          expect(await sandbox.getUrl({ port: 3000 })).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/);
          expect(await sandbox.getUrl({ port: 3000, protocol: "ws" })).toMatch(/^ws:\/\/127\.0\.0\.1:\d+\/$/);
          // The connection stays on this machine, where there is no TLS to speak.
          expect(await sandbox.getUrl({ port: 3000, protocol: "wss" })).toMatch(/^ws:\/\/127\.0\.0\.1:\d+\/$/);
          expect(await sandbox.getUrl({ port: 3000, protocol: "https" })).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/);
          await expect(sandbox.getUrl({ port: 0 })).rejects.toMatchObject({ code: "invalid_argument" });
        },
        {},
        { ports: [3000] },
      );
    });

    test("makes snapshots, and sandboxes of them", async () => {
      const provider = glovebox(options) as unknown as Compute & {
        snapshot: {
          create(id: string, options?: object): Promise<{ id: string }>;
          list(options?: object): Promise<{ id: string; createdAt: Date }[]>;
          delete(id: string): Promise<void>;
        };
      };
      const first = await provider.sandbox.create();
      await first.filesystem.writeFile("kept.txt", "here");
      const { id } = await provider.snapshot.create(first.sandboxId, { name: "ready" });
      await first.destroy();
      expect(await provider.snapshot.list({ sandboxId: first.sandboxId })).toEqual([
        expect.objectContaining({ id, createdAt: expect.any(Date) as Date }),
      ]);
      const second = await provider.sandbox.create({ snapshotId: "ready" });
      expect(await second.filesystem.readFile("kept.txt")).toBe("here");
      await second.destroy();
      await provider.snapshot.delete(id);
      expect(await listSnapshots()).toEqual([]);
    });

    test("resumes a kept sandbox that another process left", async () => {
      const made = await compute({ keep: true }).sandbox.create();
      await made.filesystem.writeFile("kept.txt", "here");
      await made.getInstance().teardown();
      const { sandbox } = compute({ keep: true });
      await expect(made.runCommand("true")).rejects.toMatchObject({ code: "closed" });
      const again = await sandbox.getById(made.sandboxId);
      expect(await again?.filesystem.readFile("kept.txt")).toBe("here");
      await again?.destroy();
      expect(await listSandboxes()).toEqual([]);
    });

    test("aborts a creation", async () => {
      const creating = compute().sandbox.create({ signal: AbortSignal.abort() });
      await expect(creating).rejects.toMatchObject({ name: "AbortError" });
    });
  });
});
