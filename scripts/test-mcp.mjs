import { join } from "node:path";
import { root } from "./prepare.mjs";
import { runSeparateSuite } from "./separate-suite.mjs";

/**
 * Runs the official tests of the Model Context Protocol against the server, and lets real clients from npm use it. What can't be installed is not
 * run, and printed as such.
 */
await runSeparateSuite({
  config: "vitest.mcp.config.ts",
  packages: [
    ["other runtimes", join(root, "tests", "runtimes")],
    ["the tests of the protocol", join(root, "tests", "mcp", "programs")],
    ["the clients", join(root, "tests", "agents", "programs")],
  ],
});
