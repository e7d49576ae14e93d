import { join } from "node:path";
import { root } from "./prepare.mjs";
import { runSeparateSuite } from "./separate-suite.mjs";

/** Runs the official tests of the protocol, and the real Claude Code and Codex from npm, against `glovebox mcp`. */
await runSeparateSuite({
  config: "vitest.mcp.config.ts",
  packages: [
    ["other runtimes", join(root, "tests", "runtimes")],
    ["the tests of the protocol", join(root, "tests", "mcp", "programs")],
    ["the agents", join(root, "tests", "agents", "programs")],
  ],
});
