import { strict as assert } from "node:assert";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage } from "@langchain/core/messages";
import { openSandbox } from "glovebox";
import { createSandboxTools } from "glovebox/langchain";
import { createAgent } from "langchain";

/** Stands in for a model: it calls two tools, and then answers with what the last one returned. */
class ScriptedModel extends BaseChatModel {
  turns = [
    { name: "write", args: { path: "numbers.txt", content: "1\n2\n3\n" } },
    { name: "bash", args: { command: "sort -r numbers.txt; cat /etc/shadow" } },
  ];

  _llmType() {
    return "scripted";
  }

  bindTools() {
    return this;
  }

  async _generate(messages) {
    const call = this.turns.shift();
    const message = new AIMessage(
      call === undefined
        ? messages.at(-1).text
        : { content: "", tool_calls: [{ ...call, id: call.name, type: "tool_call" }] },
    );
    return { generations: [{ text: "", message }] };
  }
}

const model = new ScriptedModel({});
// #region agent
const sandbox = await openSandbox({ paths: "sandbox" });
const agent = createAgent({ model, tools: createSandboxTools(sandbox) });

const { messages } = await agent.invoke({ messages: "Sort the numbers, the largest first." });
await sandbox.teardown();
// #endregion agent

assert.match(messages.at(-1).text, /^exit code 1\n3\n2\n1\ncat: .*No such file/);
console.log("written, executed, answered");
