import { BaseCodeExecutor, BaseEnvironment, BaseLlm, FunctionTool, InMemoryRunner, LlmAgent } from "@google/adk";
import { describe, expect, test } from "vitest";
import { GloveboxCodeExecutor, GloveboxEnvironment } from "../../src/adapters/adk.js";
import { listSandboxes, removeSandbox } from "../../src/sandbox.js";
import { createScratch } from "../support/scratch.js";
import { onEachBackend } from "./backends.js";

/** A model of ADK that calls these functions one after the other, and then says `done`. */
class ScriptedLlm extends BaseLlm {
  readonly seen: string[] = [];
  readonly #calls: { name: string; args: object }[];

  constructor(...calls: { name: string; args: object }[]) {
    super({ model: "scripted" });
    this.#calls = calls;
  }

  async *generateContentAsync({ contents }: { contents: object[] }): AsyncGenerator<object> {
    this.seen.push(JSON.stringify(contents));
    const functionCall = this.#calls.shift();
    yield { content: { role: "model", parts: [functionCall === undefined ? { text: "done" } : { functionCall }] } };
  }

  async connect(): Promise<never> {
    throw new Error("not in these tests");
  }
}

const contextOf = (id: string) => ({ session: { appName: "app", userId: "me", id } }) as never;
const input = (code: string, language: string, more = {}) => ({ code, language, inputFiles: [], ...more }) as never;

onEachBackend(({ options, open }) => {
  describe("an environment", () => {
    test("opens, runs, reads, writes and closes", async () => {
      const environment = new GloveboxEnvironment(options);
      expect(environment).toBeInstanceOf(BaseEnvironment);
      await expect(environment.execute("true")).rejects.toThrow(/not initialized/);
      await Promise.all([environment.initialize(), environment.initialize()]);
      await environment.initialize();
      expect([environment.isInitialized, environment.workingDir]).toEqual([true, "/workspace"]);
      expect(await listSandboxes()).toHaveLength(1);
      expect(await environment.execute("pwd; echo err >&2; exit 3")).toEqual({
        ...{ exitCode: 3, stdout: "/workspace\n", stderr: "err\n", timedOut: false },
      });
      expect(await environment.execute("echo begun; sleep 1000", 2)).toEqual({
        ...{ exitCode: 137, stdout: "begun\n", stderr: "", timedOut: true },
      });
      await environment.writeFile("/tmp/a/b.bin", new Uint8Array([0, 255]));
      await environment.writeFile("text", "ü");
      expect(await environment.readFile("/tmp/a/b.bin")).toEqual(new Uint8Array([0, 255]));
      expect(new TextDecoder().decode(await environment.readFile("text"))).toBe("ü");
      await expect(environment.readFile("missing")).rejects.toMatchObject({ code: "ENOENT" });
      await environment.execute("printf 'exit 1' > run; chmod 750 run");
      await environment.writeFile("run", "exit 4");
      expect((await environment.execute("stat -c %a run")).stdout).toBe("750\n");
      await environment.close();
      await environment.close();
      expect([environment.isInitialized, await listSandboxes()]).toEqual([false, []]);
    });

    test("is closed while it opens", async () => {
      const environment = new GloveboxEnvironment(options);
      const opening = environment.initialize();
      await environment.close();
      await opening;
      expect([environment.isInitialized, await listSandboxes()]).toEqual([false, []]);
    });

    test("is resumed by the id of its sandbox", async () => {
      const first = new GloveboxEnvironment({ ...options, keep: true });
      await first.initialize();
      await first.writeFile("kept", "here");
      const { id } = first.sandbox;
      await first.close();
      const again = new GloveboxEnvironment({ id });
      await again.initialize();
      expect(new TextDecoder().decode(await again.readFile("kept"))).toBe("here");
      await again.close();
      await removeSandbox(id);
    });
  });

  describe("a code executor", () => {
    test("runs code with files and arguments, and returns what it wrote", async () => {
      const sandbox = await open();
      const executor = new GloveboxCodeExecutor({ sandbox });
      expect(executor).toBeInstanceOf(BaseCodeExecutor);
      const inputFiles = [{ name: "in.csv", content: Buffer.from("1;2\n").toString("base64"), mimeType: "text/csv" }];
      const code = 'tr 1 3 < in.csv > out.csv; echo "$1"; echo err >&2';
      const result = await executor.executeCode({
        invocationContext: contextOf("1"),
        codeExecutionInput: input(code, "shell", { inputFiles, args: ["a b"] }),
      });
      expect(result).toEqual({
        ...{ stdout: "a b\n", stderr: "err\n" },
        outputFiles: [{ name: "out.csv", content: Buffer.from("3;2\n").toString("base64"), mimeType: "text/csv" }],
      });
      const run = async (code: string, language: string) =>
        await executor.executeCode({ invocationContext: contextOf("1"), codeExecutionInput: input(code, language) });
      expect(await run("exit 7", "shell")).toEqual({ stdout: "", stderr: "Exit code 7", outputFiles: [] });
      const bash = (await sandbox.shell("command -v bash || true")).stdout;
      expect((await run("echo $BASH", "shell")).stdout).toBe(bash === "" ? "\n" : bash);
      expect(await run("dir", "powershell")).toMatchObject({ stderr: "Unsupported language: powershell" });
      expect((await sandbox.exec({ argv: ["true"] })).exitCode).toBe(0);
    });

    test("has a sandbox for each session, and ends code at its deadline", async () => {
      const executor = new GloveboxCodeExecutor({ ...options, timeoutSeconds: 2 });
      const run = async (id: string, code: string) =>
        await executor.executeCode({ invocationContext: contextOf(id), codeExecutionInput: input(code, "shell") });
      await Promise.all([run("1", "echo one > mine"), run("2", "echo two > mine"), run("1", "true")]);
      expect((await run("1", "cat mine")).stdout).toBe("one\n");
      expect((await run("2", "cat mine")).stdout).toBe("two\n");
      expect((await run("2", "sleep 1000")).stderr).toMatch(/killed at its deadline/);
      expect(await listSandboxes()).toHaveLength(2);
      await executor.close();
      expect(await listSandboxes()).toEqual([]);
    });
  });
});

describe("an agent", () => {
  test("runs a command by a tool, and sees what it printed", async () => {
    const scratch = createScratch();
    const environment = new GloveboxEnvironment({ backend: "local" });
    await environment.initialize();
    const bash = new FunctionTool({
      name: "bash",
      description: "Runs a command.",
      parameters: { type: "OBJECT", properties: { command: { type: "STRING" } }, required: ["command"] },
      execute: async ({ command }: { command: string }) => await environment.execute(command, 60),
    });
    const model = new ScriptedLlm({ name: "bash", args: { command: "echo $((6 * 7)); cat /etc/shadow" } });
    const agent = new LlmAgent({ name: "calculator", model, tools: [bash] });
    const runner = new InMemoryRunner({ agent, appName: "app" });
    const session = await runner.sessionService.createSession({ appName: "app", userId: "me" });
    const newMessage = { role: "user", parts: [{ text: "six times seven?" }] };
    const texts: string[] = [];
    for await (const event of runner.runAsync({ userId: "me", sessionId: session.id, newMessage })) {
      texts.push((event.content?.parts ?? []).map(({ text }: { text?: string }) => text ?? "").join(""));
    }
    await environment.close();
    scratch.remove();
    expect(model.seen.at(-1)).toContain('"stdout":"42\\n"');
    expect(model.seen.at(-1)).toContain("No such file");
    expect(texts.at(-1)).toBe("done");
  });
});
