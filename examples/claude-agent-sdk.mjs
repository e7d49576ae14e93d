import { strict as assert } from "node:assert";
// #region outside
import { query } from "@anthropic-ai/claude-agent-sdk";
import { openSandbox } from "glovebox";
import { createSandboxTools, spawnInSandbox } from "glovebox/claude-agent-sdk";

// #endregion outside
/** The first message of a query says what Claude Code has; there is no key here, so that the rest would be an error. */
async function firstOf(messages) {
  for await (const message of messages) {
    if (message.type === "system" && message.subtype === "init") return message;
  }
  throw new Error("it said nothing");
}

const prompt = "Which files are there?";
// #region outside
const sandbox = await openSandbox({ workDir: "/workspace", paths: "sandbox" });
const outside = query({ prompt, options: { ...createSandboxTools(sandbox) } });
// #endregion outside
const ours = ["bash", "read", "write", "edit"].map((name) => `mcp__glovebox__${name}`);
assert.deepEqual((await firstOf(outside)).tools.sort(), ours.sort());
await sandbox.teardown();

// #region inside
const program = `@anthropic-ai/claude-agent-sdk-linux-${process.arch}/claude`;
const source = new URL(import.meta.resolve(program)).pathname;
const place = await openSandbox({
  workDir: "/workspace",
  mounts: [{ source, target: "/opt/claude" }],
  network: { allow: ["api.anthropic.com"] },
  // secrets: { ANTHROPIC_API_KEY: { hosts: ["api.anthropic.com"], header: "x-api-key", prefix: "sk-ant-" } },
});
const spawnClaudeCodeProcess = spawnInSandbox(place, { executable: "/opt/claude" });
const inside = query({ prompt, options: { permissionMode: "acceptEdits", spawnClaudeCodeProcess } });
// #endregion inside
assert.equal((await firstOf(inside)).cwd, "/workspace");
await place.teardown();
console.log("its tools inside, and itself inside");
