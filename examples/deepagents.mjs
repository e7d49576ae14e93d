import { strict as assert } from "node:assert";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage } from "@langchain/core/messages";
import { createDeepAgent } from "deepagents";
import { GloveboxSandbox } from "glovebox/deepagents";

/** Stands in for a model: it calls two tools, and then answers. */
class ScriptedModel extends BaseChatModel {
  turns = [
    { name: "write_file", args: { file_path: "/workspace/numbers.txt", content: "1\n2\n3\n" } },
    { name: "execute", args: { command: "sort -r numbers.txt; cat /etc/shadow" } },
  ];

  _llmType() {
    return "scripted";
  }

  bindTools() {
    return this;
  }

  async _generate() {
    const call = this.turns.shift();
    const message = new AIMessage(
      call === undefined ? "done" : { content: "", tool_calls: [{ ...call, id: call.name, type: "tool_call" }] },
    );
    return { generations: [{ text: "", message }] };
  }
}

const model = new ScriptedModel({});
// #region agent
const backend = await GloveboxSandbox.create({ backend: "local", timeout: 60_000 });
const agent = createDeepAgent({ model, backend });

const { messages } = await agent.invoke({ messages: "Sort the numbers, the largest first." });
await backend.close();
// #endregion agent

const output = messages.find(({ name }) => name === "execute").text;
assert.match(output, /^3\n2\n1\ncat: .*No such file/);
assert.equal(messages.at(-1).text, "done");
console.log("written, executed, answered");
