import { strict as assert } from "node:assert";
import { BaseLlm, FunctionTool, InMemoryRunner, LlmAgent } from "@google/adk";
import { GloveboxEnvironment } from "glovebox/adk";

/** Stands in for a model: it calls the tool once, and then answers with what it saw. */
class ScriptedModel extends BaseLlm {
  constructor() {
    super({ model: "scripted" });
  }

  async *generateContentAsync({ contents }) {
    const answer = contents.at(-1).parts.find(({ functionResponse }) => functionResponse)?.functionResponse.response;
    const args = { command: "seq 3 | wc -l; cat /etc/shadow" };
    const part = answer ? { text: JSON.stringify(answer) } : { functionCall: { name: "bash", args } };
    yield { content: { role: "model", parts: [part] } };
  }
}

const model = new ScriptedModel();
// #region environment
const environment = new GloveboxEnvironment({ backend: "local" });
await environment.initialize();

const bash = new FunctionTool({
  name: "bash",
  description: `Runs a shell command in ${environment.workingDir} of a sandbox.`,
  parameters: { type: "OBJECT", properties: { command: { type: "STRING" } }, required: ["command"] },
  execute: async ({ command }) => await environment.execute(command, 60),
});
const agent = new LlmAgent({ name: "counter", model, tools: [bash] });
// #endregion environment

const runner = new InMemoryRunner({ agent, appName: "example" });
const session = await runner.sessionService.createSession({ appName: "example", userId: "me" });
const newMessage = { role: "user", parts: [{ text: "How many lines does it print?" }] };
const texts = [];
for await (const { content } of runner.runAsync({ userId: "me", sessionId: session.id, newMessage })) {
  texts.push(content?.parts?.map(({ text }) => text ?? "").join("") ?? "");
}
await environment.close();

const { exitCode, stdout, stderr } = JSON.parse(texts.at(-1));
assert.deepEqual([exitCode, stdout.trim()], [1, "3"]);
assert.match(stderr, /No such file/);
console.log("called, run, answered");
