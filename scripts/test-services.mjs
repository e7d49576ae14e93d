import { runSeparateSuite } from "./separate-suite.mjs";
import { step } from "./step.mjs";

/** Runs the kit and the other tests of the backends that are services, each on a stand-in that speaks the service's wire. */
await runSeparateSuite({ config: "vitest.services.config.ts", packages: [], install: bundle });

async function bundle() {
  const work = async () => await (await import("./bundle-tests.mjs")).bundleTests();
  await step("bundle of the tests", work);
}
