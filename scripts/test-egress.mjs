import { join } from "node:path";
import { root } from "./prepare.mjs";
import { runSeparateSuite } from "./separate-suite.mjs";
import { step } from "./step.mjs";
import { ensureClients } from "./system-parts.mjs";

/**
 * Runs real clients of Debian and npm with a key that is not inside, against a server on this machine, and moves 1 GiB each way. A client that
 * can't be installed is not run, and printed as such.
 */
await runSeparateSuite({
  config: "vitest.egress.config.ts",
  packages: [["other runtimes", join(root, "tests", "runtimes")]],
  install: () => step("clients", ensureClients).catch(() => {}),
});
