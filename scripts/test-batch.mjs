import { runSeparateSuite } from "./separate-suite.mjs";

/** Runs a thousand tasks on this machine and many on Docker, with drivers that are killed, and ten thousand at a service that is simulated. */
await runSeparateSuite({ config: "vitest.batch.config.ts", packages: [] });
