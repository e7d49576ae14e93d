import { join } from "node:path";
import { installDependencies, root } from "./prepare.mjs";
import { step } from "./step.mjs";
import { runSuite } from "./suite.mjs";

/**
 * Runs the real coding agents from npm against a scripted model on this machine: each in a sandbox, by the harness. An agent whose package
 * can't be installed is not run, and printed as such. Arguments are file names, as for vitest.
 */
await runSuite("vitest.agents.config.ts", async () => {
  for (const [name, folder] of [
    ["other runtimes", join(root, "tests", "runtimes")],
    ["the agents", join(root, "tests", "agents", "programs")],
  ]) {
    // The agents that declare Node 22 bring a program of their own, or are run by the other Node.
    await step(name, () => installDependencies(folder, "--engine-strict=false")).catch(() => {});
  }
});
