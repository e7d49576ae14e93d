import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { driverNamed } from "../../support/harness/replay-agent.js";

const read = (path: string): string =>
  readFileSync(fileURLToPath(new URL(`../../../${path}`, import.meta.url)), "utf8");
const { dependencies } = JSON.parse(read("tests/agents/programs/package.json")) as {
  dependencies: Record<string, string>;
};

test.each([
  ["claude-code", "@anthropic-ai/claude-code", "Claude Code"],
  ["codex", "@openai/codex", "Codex"],
  ["copilot", "@github/copilot", "Copilot CLI"],
  ["gemini-cli", "@google/gemini-cli", "Gemini CLI"],
  ["opencode", "opencode-ai", "opencode"],
  ["pi", "@earendil-works/pi-coding-agent", "Pi"],
])("the version of %s that was tried is the one that the tests install and the manual names", (agent, name, title) => {
  const newest = driverNamed(agent).tried?.at(-1);
  expect(newest).toBe(dependencies[name]);
  expect(read("docs/agents.md").replace(/\s+/g, " ")).toContain(`${title} ${newest}`);
});
