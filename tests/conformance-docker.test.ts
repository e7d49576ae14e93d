import { afterAll, beforeAll, describe, test } from "vitest";
import { BUSYBOX, useEngine, whyNoDocker } from "./support/docker-engine.js";
import { createDockerHarness } from "./support/docker-harness.js";
import { createScratch } from "./support/scratch.js";
import { testConformance } from "./support/test-conformance.js";

const reason = whyNoDocker(BUSYBOX);
if (reason === undefined) {
  const scratch = createScratch();
  beforeAll(() => useEngine(BUSYBOX));
  afterAll(() => scratch.remove());
  testConformance(
    createDockerHarness("docker", () => ({ image: BUSYBOX })),
    undefined,
    { concurrent: true },
  );
} else {
  describe("conformance of docker", () => test("all cases", ({ skip }) => skip(reason)));
}
