import { strict as assert } from "node:assert";
import { generateText, jsonSchema, stepCountIs, tool } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { openSandbox } from "glovebox";

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
      const input = JSON.stringify({ script: "seq 3 > numbers; wc -l < numbers; cat /etc/shadow" });
      const call = { type: "tool-call", toolCallId: "1", toolName: "run", input };
      return { content: [call], finishReason: { unified: "tool-calls", raw: undefined }, usage, warnings: [] };
    }
    const text = JSON.stringify(last.content[0].output.value);
    return {
      content: [{ type: "text", text }],
      finishReason: { unified: "stop", raw: undefined },
      usage,
      warnings: [],
    };
  },
});

// #region tool
const sandbox = await openSandbox();

const run = tool({
  description: `Runs a shell script in ${sandbox.workDir}. Files stay there; there is no network.`,
  inputSchema: jsonSchema({
    type: "object",
    properties: { script: { type: "string" } },
    required: ["script"],
    additionalProperties: false,
  }),
  execute: async ({ script }, { abortSignal }) => {
    const limits = { timeout: 60_000, maxOutput: 16 * 1024 };
    const result = await sandbox.shell(script, { ...limits, ...(abortSignal && { signal: abortSignal }) });
    const { exitCode, stdout, stderr, timedOut } = result;
    return { exitCode, stdout, stderr, timedOut };
  },
});

const { text } = await generateText({ model, tools: { run }, stopWhen: stepCountIs(20), prompt: question });
await sandbox.teardown();
// #endregion tool

const { stdout, stderr, ...rest } = JSON.parse(text);
assert.deepEqual(rest, { exitCode: 1, timedOut: false });
assert.equal(stdout.trim(), "3");
assert.match(stderr, /No such file/);
console.log("called, answered");
