import { createLocalHarness } from "../../../support/local/harness.js";
import { testConformance } from "../../../support/test-conformance.js";

testConformance(
  createLocalHarness("local", () => ({ isolation: "required" })),
  undefined,
  { concurrent: true },
);
