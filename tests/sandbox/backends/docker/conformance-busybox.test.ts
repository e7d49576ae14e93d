import { afterAll, beforeAll, describe, test } from "vitest";
import { BUSYBOX, useEngine, whyNoDocker } from "../../../support/docker/engine.js";
import { createDockerHarness } from "../../../support/docker/harness.js";
import { SET_UP_LIMIT } from "../../../support/run/set-up-limit.js";
import { createScratch } from "../../../support/scratch.js";
import { testConformance } from "../../../support/test-conformance.js";

/** Where the programs of an image have a say. What is only the engine's part is shown on the other image. */
const GROUPS = [
  ...["exec", "deadline", "background", "abort", "spawn", "pty", "files", "paths", "links", "directories"],
  ...["network", "allow", "user", "snapshot", "restore"],
];

const reason = whyNoDocker(BUSYBOX);
if (reason === undefined) {
  const scratch = createScratch();
  beforeAll(() => useEngine(BUSYBOX), SET_UP_LIMIT);
  afterAll(() => scratch.remove());
  testConformance(
    createDockerHarness("docker, busybox", () => ({ image: BUSYBOX })),
    GROUPS,
    { concurrent: true },
  );
} else {
  describe("conformance of docker, busybox", () => test("all cases", ({ skip }) => skip(reason)));
}
