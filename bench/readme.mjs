import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { figure, limitOf } from "./parts/table.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const readme = join(here, "..", "README.md");
const [begin, end] = ["<!-- bench: begin -->", "<!-- bench: end -->"];
/** How many goals of each case to show. */
const shown = {
  exec: 3,
  "exec-heap": 1,
  parallel: 2,
  flood: 2,
  idle: 1,
  create: 1,
  worktree: 4,
  files: 1,
  many: 2,
  overlay: 5,
  fork: 2,
  changes: 2,
  docker: 4,
  tasks: 7,
  harness: 4,
  daytona: 2,
  cli: 1,
  ports: 3,
  listing: 1,
  reopen: 1,
};

const text = readFileSync(readme, "utf8");
const [before, after] = [text.indexOf(begin), text.indexOf(end)];
if (before < 0 || after < before) throw new Error(`README.md has no ${begin} … ${end}`);
const wanted = `${text.slice(0, before)}${begin}\n\n${section()}\n\n${text.slice(after)}`;
if (!process.argv.includes("--check")) writeFileSync(readme, wanted);
else if (wanted !== text) {
  console.error("the table in README.md is not that of bench/results: type npm run bench:readme");
  process.exitCode = 1;
}

function section() {
  const results = Object.keys(shown)
    .map((name) => join(here, "results", `${name}.json`))
    .filter((path) => existsSync(path))
    .map((path) => JSON.parse(readFileSync(path, "utf8")));
  const cells = results.flatMap(({ name, goals }) => goals.slice(0, shown[name]).map(cellsOf));
  return `${conditions(results)}\n\n${table([["What", "Glovebox", "Compared with", "Result", "Goal"], ...cells])}`;
}

function conditions(results) {
  const { cpu, cores, kernel, node, git, bubblewrap } = results[0].machine;
  const loads = results.map(({ load }) => load);
  const quick = results.some((result) => result.quick) ? " Some of it is from a quick run." : "";
  const files = [...new Set(results.map(({ machine }) => machine.files))].join(" and ");
  const load = `${Math.min(...loads)} to ${Math.max(...loads)}`;
  return `Medians, all variants in turn in one run, on ${cores} cores of ${cpu}, Linux ${kernel}, Node ${node.slice(1)}, git ${git}, bubblewrap ${bubblewrap}, files on ${files}, load average ${load} at the start.${quick}`;
}

function cellsOf(goal) {
  const { what, value, unit, reached } = goal;
  // A goal of the kind "N times faster than" has our row as `other`.
  const isTurned = goal.other?.variant.startsWith("glovebox") && !goal.ours?.variant.startsWith("glovebox");
  const [ours, other] = isTurned ? [goal.other, goal.ours] : [goal.ours, goal.other];
  const told = (row) => (row ? figure(row.p50, row.unit) : "");
  return [
    what,
    told(ours),
    other ? `${other.variant}: ${told(other)}` : "",
    figure(value, unit).trim(),
    `${limitOf(goal).trim()}${reached ? "" : ", not reached"}`,
  ];
}

function table(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  const line = (row) => `| ${row.map((cell, column) => cell.padEnd(widths[column])).join(" | ")} |`;
  return [
    line(rows[0]),
    `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`,
    ...rows.slice(1).map(line),
  ].join("\n");
}
