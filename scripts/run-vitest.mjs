import { writeFileSync } from "node:fs";
import { startVitest } from "vitest/node";
import { durationsOf, slowestFiles } from "./durations.mjs";

/** Runs vitest like `vitest run` and writes the result of every test to the file in the first argument. `--config=` names another suite. */
const [file, ...words] = process.argv.slice(2);
const config = words.find((word) => word.startsWith("--config="))?.slice("--config=".length);
const filters = words.filter((word) => !word.startsWith("--config="));
const tally = { passed: 0, failed: 0, skipped: [], failures: [], slowest: [], ...(config && { cells: [] }) };

const counter = {
  onTestRunEnd(modules, unhandled) {
    for (const module of modules) {
      for (const test of module.children.allTests()) count(test, module.relativeModuleId);
      // A file or a suite that failed outside its tests has no failed test.
      fail(module.relativeModuleId, module.errors());
      for (const suite of module.children.allSuites())
        fail(`${module.relativeModuleId} > ${suite.fullName}`, suite.errors());
      const isEmpty = [...module.children.allTests()].length === 0 && module.errors().length === 0;
      if (isEmpty) fail(module.relativeModuleId, [new Error("no tests in this file")]);
    }
    fail("outside any test", unhandled);
    tally.slowest = slowestFiles(durationsOf(modules));
  },
};

function count(test, file) {
  const { state, note, errors } = test.result();
  // A suite of its own may be a table, with a row for each `describe`.
  if (config !== undefined && test.parent.type === "suite") {
    tally.cells.push({ file, row: test.parent.name, column: test.name, state });
  }
  if (state === "passed") tally.passed += 1;
  else if (state === "skipped") tally.skipped.push({ name: test.fullName, reason: note ?? "no reason given" });
  else fail(`${file} > ${test.fullName}`, [errors[0] ?? new Error(`ended as ${state}`)]);
}

/** Counts failures and keeps the first lines of each, to print them again at the end. */
function fail(name, errors) {
  for (const { stack, message } of errors) {
    tally.failed += 1;
    tally.failures.push({
      name,
      error: String(stack ?? message)
        .split("\n")
        .slice(0, 12)
        .join("\n"),
    });
  }
}

if (filters.length === 0 && config === undefined) process.env.GLOVEBOX_TEST_ALL = "1";
const options = { run: true, watch: false, reporters: ["default", counter], ...(config && { config }) };
const vitest = await startVitest("test", filters, options);
await vitest?.close();
writeFileSync(file, JSON.stringify(tally));
process.exit(tally.failed > 0 ? 1 : (process.exitCode ?? 0));
