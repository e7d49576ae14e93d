import { afterAll } from "vitest";
import { startFakeDaytona } from "./fakes/daytona-server.js";
import { createDaytonaHarness } from "./support/daytona-harness.js";
import { createScratch } from "./support/scratch.js";
import { testConformance } from "./support/test-conformance.js";

const scratch = createScratch();
const service = await startFakeDaytona();
testConformance(createDaytonaHarness("daytona", service));
afterAll(async () => {
  await service.close();
  scratch.remove();
});
