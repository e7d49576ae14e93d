import { strict as assert } from "node:assert";
import { generateText, stepCountIs } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { openSandbox } from "glovebox";
import { createSandboxTools } from "glovebox/ai-sdk";

const question = "How many lines has the file?";
const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};
/** Stands in for a model: it calls the tool once, and answers with what the tool returned. */
const model = new MockLanguageModelV4({
  doGenerate: async ({ prompt }) => {
    const last = prompt.at(-1);
    if (last.role === "user") {
      const input = JSON.stringify({ command: "seq 3 > numbers; wc -l < numbers; cat /etc/shadow" });
      const call = { type: "tool-call", toolCallId: "1", toolName: "bash", input };
      return { content: [call], finishReason: { unified: "tool-calls", raw: undefined }, usage, warnings: [] };
    }
    return {
      content: [{ type: "text", text: last.content[0].output.value }],
      finishReason: { unified: "stop", raw: undefined },
      usage,
      warnings: [],
    };
  },
});

// #region tool
const sandbox = await openSandbox({ paths: "sandbox" });

const tools = createSandboxTools(sandbox, { timeout: 60_000 });
const { text } = await generateText({ model, tools, stopWhen: stepCountIs(20), prompt: question });
await sandbox.teardown();
// #endregion tool

assert.match(text, /^exit code 1\n3\ncat: .*No such file/);
console.log("called, answered");
