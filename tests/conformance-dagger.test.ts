import { afterAll, beforeAll } from "vitest";
import { type DaggerEngine, startDaggerEngine } from "./fakes/dagger-engine.js";
import { createDaggerHarness } from "./support/dagger-harness.js";
import { createScratch, type Scratch } from "./support/scratch.js";
import { testConformanceAtOnce } from "./support/test-conformance.js";

let engine: DaggerEngine;
let scratch: Scratch;
beforeAll(async () => {
  scratch = createScratch();
  engine = await startDaggerEngine();
});
afterAll(async () => {
  await engine.close();
  scratch.remove();
});

testConformanceAtOnce(
  createDaggerHarness("dagger", () => ({ dagger: { session: { port: engine.port, token: engine.token } } })),
  6,
);
