import { writeFileSync } from "node:fs";
import { startVitest } from "vitest/node";
import { bundleTests } from "./bundle-tests.mjs";

/** Runs vitest as `vitest run` does and writes what came of every test to the file named by the first argument. */
const [file, ...filters] = process.argv.slice(2);
const tally = { passed: 0, failed: 0, skipped: [] };

const counter = {
  onTestRunEnd(modules, unhandled) {
    for (const module of modules) {
      for (const test of module.children.allTests()) count(test);
      // A file or a suite that broke outside its tests has no failed test to show for it.
      tally.failed += module.errors().length;
      for (const suite of module.children.allSuites()) tally.failed += suite.errors().length;
      if ([...module.children.allTests()].length === 0 && module.errors().length === 0) tally.failed += 1;
    }
    tally.failed += unhandled.length;
  },
};

function count(test) {
  const { state, note } = test.result();
  if (state === "passed") tally.passed += 1;
  else if (state === "skipped") tally.skipped.push({ name: test.fullName, reason: note ?? "no reason given" });
  else tally.failed += 1;
}

await bundleTests();
process.env.GLOVEBOX_BUNDLED_TESTS = "1";
if (filters.length === 0) process.env.GLOVEBOX_TEST_ALL = "1";
const vitest = await startVitest("test", filters, { run: true, watch: false, reporters: ["default", counter] });
await vitest?.close();
writeFileSync(file, JSON.stringify(tally));
process.exit(tally.failed > 0 ? 1 : (process.exitCode ?? 0));
