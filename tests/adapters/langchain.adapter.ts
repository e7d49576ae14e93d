import { HumanMessage } from "@langchain/core/messages";
import { StructuredTool } from "@langchain/core/tools";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { createAgent } from "langchain";
import { describe, expect, test } from "vitest";
import { createSandboxTools } from "../../src/adapters/langchain.js";
import type { Sandbox } from "../../src/sandbox/types.js";
import { beats, HEARTBEAT, isStill, onEachBackend } from "./backends.js";
import { ScriptedChatModel } from "./scripted-chat-model.js";

interface Message {
  readonly type: string;
  readonly text: string;
}

onEachBackend(({ open }) => {
  describe("tools", () => {
    test("are those of LangChain, with a schema, and return text", async () => {
      const sandbox = await open();
      const tools = createSandboxTools(sandbox, { timeout: 2000 });
      expect(tools.map(({ name }) => name)).toEqual(["bash", "read", "write", "edit"]);
      for (const tool of tools) expect(tool).toBeInstanceOf(StructuredTool);
      const call = async (name: string, input: object) => await tools.find((tool) => tool.name === name)?.invoke(input);
      expect(await call("bash", { command: "echo out; echo err >&2; exit 3" })).toBe("exit code 3\nout\nerr\n");
      expect(await call("bash", { command: "sleep 1000" })).toMatch(/^exit code 137\n\[killed at its deadline, /);
      expect(await call("read", { path: "missing" })).toBe("not_found: missing does not exist");
      await expect(call("bash", { comand: "x" })).rejects.toThrow(/schema/);
    });

    test("work in a ToolNode of LangGraph", async () => {
      const node = new ToolNode(createSandboxTools(await open()));
      const message = await new ScriptedChatModel([{ name: "bash", args: { command: "seq 3 | wc -l" } }]).invoke("x");
      const { messages } = await node.invoke({ messages: [message] });
      expect((messages as Message[])[0]?.text.trim()).toMatch(/^exit code 0\n\s*3$/);
    });
  });

  describe("an agent", () => {
    const agentFor = (sandbox: Sandbox, model: ScriptedChatModel) =>
      createAgent({ model, tools: createSandboxTools(sandbox) });

    test("repairs a file, and runs its test", async () => {
      const sandbox = await open();
      await sandbox.writeFile("sum.sh", 'echo "$(($1 - $2))"\n');
      const command = 'test "$(sh sum.sh 2 3)" = 5 && echo green || { echo red; exit 1; }';
      const model = new ScriptedChatModel([
        { name: "bash", args: { command } },
        { name: "edit", args: { path: "sum.sh", old: "$1 - $2", new: "$1 + $2" } },
        { name: "bash", args: { command } },
      ]);
      const { messages } = await agentFor(sandbox, model).invoke({ messages: [new HumanMessage("repair it")] });
      const results = (messages as Message[]).filter(({ type }) => type === "tool").map(({ text }) => text);
      expect(results).toEqual(["exit code 1\nred\n", "replaced 1 occurrence in sum.sh", "exit code 0\ngreen\n"]);
    });

    test("is aborted: the call rejects, and what it ran is killed", async () => {
      const sandbox = await open();
      const model = new ScriptedChatModel([{ name: "bash", args: { command: HEARTBEAT } }]);
      const aborting = new AbortController();
      const running = agentFor(sandbox, model).invoke({ messages: "wait" }, { signal: aborting.signal });
      await expect.poll(() => beats(sandbox)).toBe(true);
      aborting.abort();
      await expect(running).rejects.toThrow();
      await expect.poll(() => isStill(sandbox)).toBe(true);
    });
  });
});
