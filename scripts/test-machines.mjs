import { join } from "node:path";
import { root } from "./prepare.mjs";
import { runSeparateSuite } from "./separate-suite.mjs";

/**
 * Types the commands of the readme and of the tutorial on a fresh Debian, as root, as a user and in containers, and uses the package on
 * Node 24, Bun and Deno. What can't be installed is not run, and printed as such.
 */
await runSeparateSuite({
  config: "vitest.machines.config.ts",
  packages: [["other runtimes", join(root, "tests", "runtimes")]],
});
