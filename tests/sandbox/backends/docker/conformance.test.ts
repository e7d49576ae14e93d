import { join } from "node:path";
import { afterAll, beforeAll, describe, test } from "vitest";
import { DEBIAN, useEngine, whyNoDocker } from "../../../support/docker/engine.js";
import { createDockerHarness } from "../../../support/docker/harness.js";
import { SET_UP_LIMIT } from "../../../support/run/set-up-limit.js";
import { createRepository, createScratch } from "../../../support/scratch.js";
import { testConformance } from "../../../support/test-conformance.js";

const reason = whyNoDocker(DEBIAN);
if (reason === undefined) {
  const scratch = createScratch();
  beforeAll(() => useEngine(DEBIAN), SET_UP_LIMIT);
  afterAll(() => scratch.remove());
  testConformance(
    createDockerHarness("docker", () => ({ image: DEBIAN })),
    undefined,
    { concurrent: true },
  );
  const repo = createRepository(join(scratch.path, "repo"));
  const withRepository = createDockerHarness("docker with a repository", () => ({ image: DEBIAN, repo }));
  testConformance(withRepository, ["snapshot", "restore", "fork", "changes"], { concurrent: true });
} else {
  describe("conformance of docker", () => test("all cases", ({ skip }) => skip(reason)));
}
