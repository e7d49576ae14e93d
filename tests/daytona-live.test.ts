import { afterAll, describe, expect, test } from "vitest";
import { conformance, createDaytonaSandbox } from "../src/sandbox/daytona.js";
import { createScratch } from "./support/scratch.js";
import { testConformance } from "./support/test-conformance.js";

const hasKey = Boolean(process.env["DAYTONA_API_KEY"]);
const hasToken = Boolean(process.env["GITHUB_TOKEN"]);

describe("against the real service", () => {
  if (!hasKey) {
    test("all scenarios", ({ skip }) => skip("they need DAYTONA_API_KEY"));
    return;
  }
  const scratch = createScratch();
  afterAll(() => scratch.remove());
  testConformance({
    backend: "daytona, the real service",
    skips: conformance.skips ?? {},
    open: (opts) => createDaytonaSandbox(opts),
  });

  test.runIf(hasToken)("a public repository is cloned, changed and committed", { timeout: 300_000 }, async () => {
    await using sandbox = await createDaytonaSandbox({ repo: "octocat/Hello-World", branch: "glovebox-test" });
    await sandbox.writeFile("new.txt", "hello\n");
    expect(await sandbox.snapshot()).toMatch(/^snapshot-/);
    expect((await sandbox.shell("git branch --show-current")).stdout).toBe("glovebox-test\n");
    expect(await sandbox.defaultBranch?.()).toBe("master");
  });
});

test.skipIf(hasKey)("is not asked without a key", () => {
  expect(process.env["DAYTONA_API_KEY"] ?? "").toBe("");
});
