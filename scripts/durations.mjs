import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./prepare.mjs";

/** The milliseconds each test file takes, by its path from the root of the repository. */
const RECORD = join(root, "tests", "durations.json");

/**
 * Records how long the files of this run took: `npm run test:durations [file...]`. Keeps the entries of files that did not
 * run, and drops those of deleted files.
 */
// biome-ignore lint/style/noDefaultExport: vitest requires it for a reporter
export default class DurationsReporter {
  onTestRunEnd(modules) {
    const recorded = existsSync(RECORD) ? JSON.parse(readFileSync(RECORD, "utf8")) : {};
    const merged = mergeDurations(recorded, durationsOf(modules.filter((module) => module.state() === "passed")));
    const present = Object.entries(merged).filter(([file]) => existsSync(join(root, file)));
    writeFileSync(RECORD, `${JSON.stringify(Object.fromEntries(present), undefined, 2)}\n`);
  }
}

/** The durations of a run; a bundled file counts as its source. */
export function durationsOf(modules) {
  const nameOf = ({ relativeModuleId }) => relativeModuleId.replace(/^dist\//, "").replace(/\.js$/, ".ts");
  return Object.fromEntries(modules.map((module) => [nameOf(module), module.diagnostic().duration]));
}

/** Merges new durations, rounded and sorted by name. Similar ones don't change, to keep the diff of the record small. */
export function mergeDurations(recorded, measured) {
  const isSame = (before, now) => Math.abs(now - before) <= Math.max(1_000, before / 2);
  const merged = { ...recorded };
  for (const [file, now] of Object.entries(measured)) {
    if (!(file in recorded && isSame(recorded[file], now))) merged[file] = round(now);
  }
  return Object.fromEntries(Object.entries(merged).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The slowest files, one per line. */
export function slowestFiles(measured, count = 10) {
  const longest = Object.entries(measured).sort(([, a], [, b]) => b - a);
  return longest.slice(0, count).map(([file, ms]) => `${(ms / 1000).toFixed(1).padStart(6)} s  ${file}`);
}

function round(ms) {
  const unit = ms < 10_000 ? 500 : 5_000;
  return Math.max(1, Math.round(ms / unit)) * unit;
}
