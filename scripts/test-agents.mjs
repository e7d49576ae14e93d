import { join } from "node:path";
import { root } from "./prepare.mjs";
import { runSeparateSuite } from "./separate-suite.mjs";

/**
 * Runs the real coding agents from npm against a scripted model on this machine: each in a sandbox, by the harness. An agent whose package
 * can't be installed is not run, and printed as such.
 */
await runSeparateSuite({
  config: "vitest.agents.config.ts",
  packages: [
    ["other runtimes", join(root, "tests", "runtimes")],
    ["the agents", join(root, "tests", "agents", "programs")],
  ],
});
