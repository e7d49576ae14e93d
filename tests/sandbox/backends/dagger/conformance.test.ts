import { createDaggerHarness } from "../../../support/dagger/harness.js";
import { useDaggerPlace } from "../../../support/dagger/place.js";
import { testConformanceAtOnce } from "../../../support/test-conformance.js";

const { options } = useDaggerPlace();

testConformanceAtOnce(
  createDaggerHarness("dagger", () => options()),
  6,
);
