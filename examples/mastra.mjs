import { strict as assert } from "node:assert";
import { Agent } from "@mastra/core/agent";
// #region workspace
import { Workspace } from "@mastra/core/workspace";
import { GloveboxFilesystem, GloveboxSandbox } from "glovebox/mastra";

const sandbox = new GloveboxSandbox({ network: "none", timeout: 60_000 });
const workspace = new Workspace({ sandbox, filesystem: new GloveboxFilesystem({ sandbox }) });
// #endregion workspace

/** Stands in for a model: it calls a tool once, and answers with what the tool returned. */
const model = {
  specificationVersion: "v2",
  provider: "scripted",
  modelId: "scripted",
  supportedUrls: {},
  doGenerate: async ({ prompt }) => {
    const last = prompt.at(-1);
    const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
    if (last.role === "tool") {
      const text = String(last.content[0].output.value);
      return { content: [{ type: "text", text }], finishReason: "stop", usage, warnings: [] };
    }
    const input = JSON.stringify({ command: "seq 3 > numbers; wc -l < numbers; cat /etc/shadow" });
    const call = { type: "tool-call", toolCallId: "1", toolName: "mastra_workspace_execute_command", input };
    return { content: [call], finishReason: "tool-calls", usage, warnings: [] };
  },
};

// #region agent
const agent = new Agent({ id: "worker", name: "Worker", instructions: "Use the workspace.", model, workspace });
const { text } = await agent.generate("How many lines has the file?");
// #endregion agent
assert.match(text, /^3$/m);
assert.match(text, /No such file/);

// #region files
await workspace.filesystem.writeFile("/notes.md", "# Notes\n");
const { stdout } = await sandbox.executeCommand("cat", ["/workspace/notes.md"]);
await sandbox._destroy();
// #endregion files
assert.equal(stdout, "# Notes\n");
console.log("called, answered, written");
