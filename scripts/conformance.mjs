import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, sep } from "node:path";
import { conformanceOf, saveConformance } from "../dist/src/sandbox/host.js";
import { backendNames, capabilitiesOf } from "../dist/src/sandbox.js";
import { conformanceCases } from "../dist/src/testing.js";
import { root } from "./prepare.mjs";
import { run } from "./processes.mjs";

/**
 * Runs the conformance kit on backends and prints one table, cases by backends: `conformance.mjs --all | name...`.
 * With `--write` it records the results in `conformance/`, for the README.
 */
const words = process.argv.slice(2);
const asked = words.filter((word) => !word.startsWith("-"));
const known = backendNames();
const unknown = asked.filter((name) => !known.includes(name));
if (unknown.length > 0 || (asked.length === 0 && !words.includes("--all"))) {
  const complaint = unknown.length > 0 ? `unknown: ${unknown.join(", ")}. ` : "";
  console.error(`${complaint}usage: npm run conformance -- --all | ${known.join(" | ")} [--write]`);
  process.exit(2);
}

const MARKS = { passed: "passed", refused: "refused", "not run": "not run", failed: "FAILED" };
const names = asked.length > 0 ? asked : known;
const columns = await runAll(names);
console.log(table(columns));
for (const { name, on, notRun, counts } of columns) {
  const sums = Object.entries(counts).map(([outcome, count]) => `${count} ${outcome}`);
  console.log(`${name}: ${notRun === undefined ? `${sums.join(", ")}, on ${on}` : `not run: ${notRun}`}`);
}
console.log("refused: the backend does not support this, and either refused it or lists it as a known gap.");
for (const column of columns) {
  for (const { id, outcome, reason } of column.results) {
    if (outcome === "failed") console.log(`FAILED ${column.name} ${id}: ${String(reason).split("\n")[0]}`);
  }
}
process.exit(columns.some(({ counts }) => (counts.failed ?? 0) > 0) ? 1 : 0);

async function runAll(list) {
  const place = mkdtempSync(join(tmpdir(), "glovebox-conformance-"));
  const file = join(place, "results.json");
  const tests = list.map((name) => testOf(name)).filter((path) => existsSync(join(root, path)));
  try {
    if (tests.length > 0) {
      const vitest = [join(root, "node_modules", "vitest", "vitest.mjs"), "run", ...tests];
      const args = [...vitest, "--reporter", join(root, "scripts", "conformance-reporter.mjs")];
      await run(process.execPath, args, { cwd: root, env: { ...process.env, GLOVEBOX_CONFORMANCE_FILE: file } });
    }
    const seen = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
    return await Promise.all(list.map((name) => columnOf(name, seen[name])));
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

async function columnOf(name, seen) {
  const path = join(root, testOf(name));
  if (!existsSync(path)) return { name, results: [], counts: {}, notRun: "the backend is not there yet" };
  if (!seen || seen.cases.length === 0) return { name, results: [], counts: {}, notRun: seen?.notRun ?? "no case ran" };
  // A stand-in replaces the service on the wire; the commands are real either way.
  const on = usesStandIn(path) ? "a stand-in for the service" : "this machine";
  const { skips = {} } = await conformanceOf(name);
  const results = seen.cases.map(({ id, state, reason }) => ({
    id,
    outcome: outcomeOf(state, id, reason, skips),
    reason,
  }));
  const counts = {};
  for (const { outcome } of results) counts[outcome] = (counts[outcome] ?? 0) + 1;
  const column = { name, on, results, counts };
  await saveConformance(name, { on, counts });
  if (words.includes("--write")) await keep(column);
  return column;
}

/** Whether a test, or its support code, imports a stand-in. */
function usesStandIn(path) {
  const imports = (file) =>
    [...readFileSync(file, "utf8").matchAll(/from "(\.[^"]+)\.js"/g)].map(([, name]) => join(file, "..", `${name}.ts`));
  const below = (folder) => (file) => file.startsWith(join(root, "tests", folder, sep));
  const own = imports(path);
  return [...own, ...own.filter(below("support")).flatMap(imports)].some(below("fakes"));
}

function outcomeOf(state, id, reason = "", skips = {}) {
  if (state !== "skipped") return state;
  return reason.startsWith("capabilities.") || skips[id] !== undefined ? "refused" : "not run";
}

async function keep({ name, on, results, counts }) {
  const others = results.filter(({ outcome }) => outcome !== "passed");
  const text = JSON.stringify(
    { backend: name, on, capabilities: await capabilitiesOf(name), counts, others },
    undefined,
    2,
  );
  writeFileSync(join(root, "conformance", `${name}.json`), `${text}\n`);
}

function testOf(name) {
  return join("tests", "sandbox", "backends", name, "conformance.test.ts");
}

function table(list) {
  const rows = conformanceCases.map(({ id }) => [
    id,
    ...list.map(({ results, notRun }) => {
      const outcome = results.find((each) => each.id === id)?.outcome;
      return MARKS[outcome] ?? (notRun === undefined ? "?" : "not run");
    }),
  ]);
  const all = [["case", ...list.map(({ name }) => name)], ...rows];
  const widths = all[0].map((_, column) => Math.max(...all.map((row) => row[column].length)));
  return all
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column]))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
