import { type HarnessOptions, runHarness } from "../../src/harness.js";
import { egressInternals } from "../../src/sandbox/egress/open-egress.js";

/** Does the run in the first argument, as `startApart` wants it. */
egressInternals.route = { lookup: async () => ["127.0.0.1"], isReachable: (address) => address === "127.0.0.1" };
const report = await runHarness(JSON.parse(process.argv[2] ?? "{}") as HarnessOptions);
console.log(JSON.stringify(report));
