import { strict as assert } from "node:assert";
import { run, setTracingDisabled } from "@openai/agents-core";
// #region agent
import { Manifest, SandboxAgent } from "@openai/agents-core/sandbox";
import { assistantMessage, functionCall, modelResponder, ScriptedModel } from "@openai/agents-core/testing";
import { GloveboxSandboxClient } from "glovebox/openai-agents";

// #endregion agent
setTracingDisabled(true);
const diff = "@@\n-echo $(($1 - $2))\n+echo $(($1 + $2))\n";
const operation = { type: "update_file", path: "sum.sh", diff };
/** Stands in for a model: it repairs the file, runs it, and answers with what it printed. */
const model = new ScriptedModel([
  [{ type: "apply_patch_call", callId: "1", status: "completed", operation }],
  [functionCall("exec_command", { cmd: "sh sum.sh 2 3" }, { callId: "2" })],
  modelResponder(({ request }) => [assistantMessage(JSON.stringify(request.input.at(-1).output))]),
]);

// #region agent
const agent = new SandboxAgent({
  name: "Fixer",
  instructions: "Repair the file.",
  model,
  defaultManifest: new Manifest({ entries: { "sum.sh": { type: "file", content: "echo $(($1 - $2))\n" } } }),
});
const client = new GloveboxSandboxClient({ network: "none" });
const { finalOutput } = await run(agent, "2 and 3 should be 5.", { sandbox: { client } });
// #endregion agent
assert.match(finalOutput, /exited with code 0\\nOutput:\\n5/);

// #region resume
const session = await client.create(new Manifest());
await session.exec({ cmd: "echo work > done" });
const stored = JSON.stringify(await client.serializeSessionState(session.state));
await session.close();

const resumed = await client.resume(await client.deserializeSessionState(JSON.parse(stored)));
const { stdout } = await resumed.exec({ cmd: "cat done" });
await client.delete(resumed.state);
// #endregion resume
assert.equal(stdout, "work\n");
console.log("repaired, stored, resumed");
