import { strict as assert } from "node:assert";
import { openSandbox } from "glovebox";
import { defineBlueprint, needsOf, type RunContext, runBlueprint } from "glovebox/harness";

// #region define
const blueprint = defineBlueprint({
  name: "review",
  sandbox: {
    // Claude Code by Bedrock; the region decides which host is reached, and the keys stay outside.
    env: { CLAUDE_CODE_USE_BEDROCK: "1", AWS_REGION: "eu-central-1" },
    // Files below HOME: a text, or { file } for one of your own.
    home: { ".claude/CLAUDE.md": "Answer in one sentence.\n" },
  },
  nodes: [
    { kind: "command", id: "look", shell: "cat ~/.claude/CLAUDE.md" },
    {
      kind: "agent",
      id: "review",
      agent: "claude-code",
      prompt: "{{ intent }}",
      // A server that the agent starts in the sandbox, beside itself.
      mcp: { notes: { command: ["node", "tools/notes.mjs"], env: { NOTES: "review.md" } } },
    },
  ],
});
const { network, secrets } = needsOf(blueprint);
console.log(network); // { allow: [ "bedrock-runtime.eu-central-1.amazonaws.com", … ] }
console.log(secrets[0]?.names.join(" or ")); // AWS_BEARER_TOKEN_BEDROCK or AWS_SECRET_ACCESS_KEY
// #endregion define

assert.deepEqual(network, {
  allow: ["bedrock-runtime.eu-central-1.amazonaws.com", "bedrock.eu-central-1.amazonaws.com"],
});
assert.throws(() => needsOf(blueprint, { agent: "pi" }), /pi does not start MCP servers/);

// Only the first node is run here: it needs neither the agent nor its keys.
const first = defineBlueprint({ ...blueprint, nodes: blueprint.nodes.slice(0, 1) });
await using sandbox = await openSandbox({ backend: "local" });
const context: RunContext = {
  ...{ runId: "example", blueprint: first.name, intent: "review it", repo: ".", branch: "review", push: false },
  ...{ workDir: sandbox.workDir, sandboxType: sandbox.backend, inputs: {}, env: {}, results: {} },
};
const outcome = await runBlueprint(first, { sandbox, context, onEvent: () => undefined });
assert.equal(outcome.nodes[0]?.output, "Answer in one sentence.\n");
console.log("declared, decided, written");
