import { join } from "node:path";
import { installDependencies, root } from "./prepare.mjs";
import { step } from "./step.mjs";
import { runSuite } from "./suite.mjs";
import { ensureClients } from "./system-parts.mjs";

/**
 * Runs real clients of Debian and npm with a key that is not inside, against a server on this machine, and moves 1 GiB each way. A client that
 * can't be installed is not run, and printed as such. Arguments are file names, as for vitest.
 */
await runSuite("vitest.egress.config.ts", async () => {
  await step("clients", ensureClients).catch(() => {});
  const runtimes = join(root, "tests", "runtimes");
  await step("other runtimes", () => installDependencies(runtimes, "--engine-strict=false")).catch(() => {});
});
