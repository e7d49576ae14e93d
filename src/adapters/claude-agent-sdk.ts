export { createSandboxTools, type SandboxToolSettings } from "./claude-agent-sdk/sandbox-tools.js";
export { type ClaudeCodeOptions, spawnInSandbox } from "./claude-agent-sdk/spawn-in-sandbox.js";
