import { afterAll, beforeAll, test } from "vitest";
import { createDaggerHarness } from "./support/dagger-harness.js";
import { createScratch, type Scratch } from "./support/scratch.js";
import { testConformanceAtOnce } from "./support/test-conformance.js";

// A real engine is not ours to start: one that somebody has opened a session with is used.
if (process.env["DAGGER_SESSION_PORT"] && process.env["DAGGER_SESSION_TOKEN"]) {
  let scratch: Scratch;
  beforeAll(() => {
    scratch = createScratch();
  });
  afterAll(() => scratch.remove());
  const { backend, open, remove, skips } = createDaggerHarness("dagger-live", () => ({}));
  testConformanceAtOnce({ backend, open, ...(remove && { remove }), ...(skips && { skips }) }, 4);
} else {
  const reason = "no Dagger engine is reachable (DAGGER_SESSION_PORT and DAGGER_SESSION_TOKEN name none)";
  test("conformance of dagger-live", ({ skip }) => skip(reason));
}
