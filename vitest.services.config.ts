import type { ViteUserConfig } from "vitest/config";
import { isOfService, parallelSuite } from "./tests/support/run/parallel-suite.js";

/** `npm run test:services`: the backends that are services, on stand-ins. Runs what scripts/bundle-tests.mjs made. */
const config: ViteUserConfig = parallelSuite({ isBundled: true, has: isOfService });

export default config;
