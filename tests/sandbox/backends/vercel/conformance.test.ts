import { afterAll, beforeAll } from "vitest";
import { FakeVercel } from "../../../fakes/vercel/server.js";
import { createScratch, type Scratch } from "../../../support/scratch.js";
import { testConformance } from "../../../support/test-conformance.js";
import { createVercelHarness } from "../../../support/vercel/harness.js";

let service: FakeVercel;
let scratch: Scratch;

beforeAll(async () => {
  scratch = createScratch();
  service = await FakeVercel.start();
});

afterAll(async () => {
  await service.close();
  scratch.remove();
});

testConformance(
  createVercelHarness(() => service),
  undefined,
  { concurrent: true },
);
