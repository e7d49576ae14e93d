import type { ViteUserConfig } from "vitest/config";
import { isOfService, parallelSuite } from "./tests/support/run/parallel-suite.js";

/** `npm test` runs what scripts/bundle-tests.mjs made, without the services, which have a suite of their own. Everything else runs all sources. */
const isBundled = process.env["GLOVEBOX_BUNDLED_TESTS"] === "1";
const config: ViteUserConfig = parallelSuite({ isBundled, has: (file) => !isBundled || !isOfService(file) });

export default config;
