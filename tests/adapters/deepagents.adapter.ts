import { BaseSandbox, createDeepAgent, SandboxError } from "deepagents";
import { describe, expect, test } from "vitest";
import { GloveboxSandbox, type GloveboxSandboxOptions } from "../../src/adapters/deepagents.js";
import { listSandboxes, removeSandbox } from "../../src/sandbox.js";
import { beats, HEARTBEAT, isStill, onEachBackend } from "./backends.js";
import { ScriptedChatModel } from "./scripted-chat-model.js";

interface Message {
  readonly type: string;
  readonly text: string;
}

onEachBackend(({ options, open }) => {
  const using = async (more: GloveboxSandboxOptions, work: (backend: GloveboxSandbox) => Promise<void>) => {
    const backend = await GloveboxSandbox.create({ ...options, ...more });
    try {
      await work(backend);
    } finally {
      await backend.close();
    }
  };
  const bytes = (text: string) => new TextEncoder().encode(text);

  describe("a backend", () => {
    test("is a sandbox of deepagents that opens and closes", async () => {
      const backend = new GloveboxSandbox({ ...options, initialFiles: { "a/b.txt": "first\n" } });
      expect(backend).toBeInstanceOf(BaseSandbox);
      expect([backend.id, backend.isRunning]).toEqual(["", false]);
      await expect(backend.execute("true")).rejects.toMatchObject({ code: "NOT_INITIALIZED" });
      const opening = backend.initialize();
      await expect(backend.initialize()).rejects.toSatisfy(SandboxError.isInstance);
      await opening;
      expect([backend.id, backend.isRunning]).toEqual([backend.sandbox.id, true]);
      expect(await backend.execute("pwd; cat a/b.txt; echo err >&2; exit 4")).toEqual({
        ...{ output: "/workspace\nfirst\nerr\n", exitCode: 4, truncated: false },
      });
      await backend.close();
      await backend.close();
      expect([backend.isRunning, await listSandboxes()]).toEqual([false, []]);
    });

    test("has a result for each file", async () => {
      await using({}, async (backend) => {
        await backend.execute("mkdir d; touch f; printf 'a b' > run; chmod 750 run");
        await backend.edit("run", "a", "c");
        expect((await backend.execute("stat -c %a run; cat run")).output).toBe("750\nc b");
        const files: [string, Uint8Array][] = [
          ["/tmp/x", bytes("ü")],
          ["d", bytes("")],
          ["f/g", bytes("")],
        ];
        expect(await backend.uploadFiles(files)).toEqual([
          { path: "/tmp/x", error: null },
          { path: "d", error: "is_directory" },
          { path: "f/g", error: "invalid_path" },
        ]);
        expect(await backend.downloadFiles(["/tmp/x", "d", "missing"])).toEqual([
          { path: "/tmp/x", content: bytes("ü"), error: null },
          { path: "d", content: null, error: "is_directory" },
          { path: "missing", content: null, error: "file_not_found" },
        ]);
      });
    });

    test("ends a command at its deadline, says so, and shortens long output", async () => {
      await using({ timeout: 2000, maxOutput: 1000 }, async (backend) => {
        const late = await backend.execute("echo begun; sleep 1000");
        expect(late).toMatchObject({ exitCode: 137, truncated: false });
        expect(late.output).toMatch(/^begun\n\[killed at its deadline, after 2(\.\d)? s\]\n$/);
        expect(await backend.execute("seq 100000")).toMatchObject({ exitCode: 0, truncated: true });
      });
    });

    test("is resumed by its id", async () => {
      const first = await GloveboxSandbox.create({ ...options, keep: true });
      await first.write("kept.txt", "here");
      await first.close();
      const again = await GloveboxSandbox.create({ id: first.id });
      expect((await again.read("kept.txt")).content).toContain("here");
      await again.close();
      await removeSandbox(first.id);
    });

    test("leaves a sandbox that it was given open", async () => {
      const sandbox = await open();
      const backend = await GloveboxSandbox.create({ sandbox });
      expect(await backend.execute("echo there")).toMatchObject({ output: "there\n" });
      await backend.close();
      expect(backend.isRunning).toBe(false);
      expect((await sandbox.exec({ argv: ["true"] })).exitCode).toBe(0);
    });
  });

  describe("an agent", () => {
    test("repairs a file, and runs its test", async () => {
      await using({ initialFiles: { "sum.sh": 'echo "$(($1 - $2))"\n' } }, async (backend) => {
        const command = 'test "$(sh sum.sh 2 3)" = 5 && echo green || { echo red; exit 1; }';
        const file_path = "/workspace/sum.sh";
        const model = new ScriptedChatModel([
          { name: "execute", args: { command } },
          { name: "read_file", args: { file_path } },
          { name: "edit_file", args: { file_path, old_string: "$1 - $2", new_string: "$1 + $2" } },
          { name: "execute", args: { command } },
          { name: "grep", args: { pattern: "+", path: "/workspace" } },
        ]);
        const { messages } = await createDeepAgent({ model, backend }).invoke({ messages: "repair it" });
        const results = (messages as Message[]).filter(({ type }) => type === "tool").map(({ text }) => text);
        expect(results).toHaveLength(5);
        expect(results[0]).toMatch(/^red\n/);
        expect(results[1]).toContain("$1 - $2");
        expect(results[3]).toMatch(/^green\n/);
        expect(results[4]).toContain("sum.sh");
        expect((messages as Message[]).at(-1)?.text).toBe("done");
      });
    });

    test("is aborted: the call rejects, and what it ran is killed", async () => {
      await using({}, async (backend) => {
        const model = new ScriptedChatModel([{ name: "execute", args: { command: HEARTBEAT } }]);
        const aborting = new AbortController();
        const agent = createDeepAgent({ model, backend });
        const running = agent.invoke({ messages: "wait" }, { signal: aborting.signal });
        await expect.poll(() => beats(backend.sandbox)).toBe(true);
        aborting.abort();
        await expect(running).rejects.toThrow();
        await expect.poll(() => isStill(backend.sandbox)).toBe(true);
      });
    });
  });
});
