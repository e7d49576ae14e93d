import { afterAll, beforeAll, describe, test } from "vitest";
import { createDaytonaSandbox, daytona } from "../../../../src/sandbox/backends/daytona.js";
import { scenarios } from "../../../support/daytona/scenarios.js";
import { type DaytonaService, startDaytonaService } from "../../../support/daytona/service.js";
import { createScratch } from "../../../support/scratch.js";
import { testConformance } from "../../../support/test-conformance.js";

const hasKey = Boolean(process.env["DAYTONA_API_KEY"]);
const MINUTES = 60_000;

describe("against the real service", () => {
  if (!hasKey) {
    for (const name of ["the conformance kit", ...Object.keys(scenarios)]) {
      test(name, ({ skip }) => skip("not run: it needs DAYTONA_API_KEY"));
    }
    return;
  }
  const scratch = createScratch();
  afterAll(() => scratch.remove());
  for (const [name, play] of Object.entries(scenarios)) {
    test(name, { timeout: 10 * MINUTES }, () =>
      play({ repo: "octocat/Hello-World", defaultBranch: "master", open: (opts) => createDaytonaSandbox(opts) }),
    );
  }
  testConformance({
    backend: "daytona, the real service",
    skips: daytona.conformance?.skips ?? {},
    open: (opts) => createDaytonaSandbox(opts),
  });
});

describe.concurrent("against the stand-in, as it would be against the service", () => {
  let there: DaytonaService;
  beforeAll(async () => {
    there = await startDaytonaService();
  });
  afterAll(() => there.close());
  for (const [name, play] of Object.entries(scenarios)) {
    test(name, () => play({ repo: "acme/widgets", defaultBranch: "main", githubToken: there.token, open: there.open }));
  }
});
