import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { markdownTable, writeSection } from "../scripts/generated-section.mjs";
import { root } from "../scripts/prepare.mjs";
import { figure, limitOf } from "./parts/table.mjs";

/** Writes the numbers of `bench/results/` into the README and `docs/benchmarks.md`: `readme.mjs [--check]`. */
const COMMAND = "npm run bench:readme";
/** The cases of each section of `docs/benchmarks.md`. */
const SECTIONS = {
  commands: ["exec", "exec-heap", "parallel", "flood"],
  sandboxes: ["create", "reopen", "idle", "many", "files", "listing", "ports", "cli"],
  repositories: ["worktree", "overlay", "fork", "changes"],
  containers: ["docker", "tasks"],
  daytona: ["daytona"],
  runs: ["harness", "agent"],
  batches: ["batch"],
  kubernetes: ["kubernetes"],
  models: ["mcp", "egress"],
};
/** The rows of the README, by the goals that they come from. */
const IN_README = {
  "Run `true` in an open sandbox": "warm exec of true against execFile",
  "The same, against bubblewrap alone": "warm exec of true against a fresh bwrap",
  "16 commands at once": "16 in flight",
  "Open an empty sandbox": "create an empty sandbox",
  "Open a sandbox on 50,000 files": "overlay create, 50,000 files",
  "Run `true` in a container": "exec of true, dockerode against glovebox",
};
/** Goals whose own names are too short for a table. */
const LABELS = {
  "its teardown, 1,000 files": "teardown of a worktree sandbox, 1,000 files",
  "its teardown, 10,000 files": "teardown of a worktree sandbox, 10,000 files",
  "the same against 1,000 files": "overlay create, 50,000 files against 1,000",
  "each of them outside Node": "memory of each of these outside Node",
  "idle sandbox outside Node": "memory of an idle sandbox outside Node",
  "sandboxes of 200 that answered wrongly": "wrong answers of 200 sandboxes",
  "kinds of the census that are not back": "kinds of resources left after 200 sandboxes",
  "runs of 50 at once that came out wrong": "wrong results of 50 runs at once",
};

const results = Object.values(SECTIONS).flat().filter(isMeasured).map(read);
for (const [section, cases] of Object.entries(SECTIONS)) {
  const goals = results.filter(({ name }) => cases.includes(name)).flatMap(({ goals }) => goals);
  const table = markdownTable([["What", "Glovebox", "Compared with", "Result", "Goal"], ...goals.map(cellsOf)]);
  writeSection("docs/benchmarks.md", `bench ${section}`, table, COMMAND);
}
writeSection("docs/benchmarks.md", "bench machine", conditions(), COMMAND);
writeSection("README.md", "bench", markdownTable([["", "Glovebox", "Compared with"], ...readmeRows()]), COMMAND);

function isMeasured(name) {
  return existsSync(pathOf(name));
}

function read(name) {
  return JSON.parse(readFileSync(pathOf(name), "utf8"));
}

function pathOf(name) {
  return join(root, "bench", "results", `${name}.json`);
}

function readmeRows() {
  const goals = results.flatMap(({ goals }) => goals);
  return Object.entries(IN_README).map(([label, what]) => {
    const goal = goals.find((each) => each.what === what);
    if (goal === undefined) throw new Error(`no result has the goal "${what}"`);
    return [label, ...cellsOf(goal).slice(1, 3)];
  });
}

function conditions() {
  const { cpu, cores, kernel, node, git, bubblewrap } = results[0].machine;
  const loads = results.map(({ load }) => load);
  const quick = results.some((result) => result.quick) ? " Some are from a quick run." : "";
  const files = [...new Set(results.map(({ machine }) => machine.files))].join(" and ");
  const load = `${Math.min(...loads)} to ${Math.max(...loads)}`;
  return `Measured on ${cores} cores of ${cpu}, Linux ${kernel}, Node ${node.slice(1)}, git ${git}, bubblewrap ${bubblewrap}, files on ${files}, load average ${load} at the start.${quick}`;
}

function cellsOf(goal) {
  const { what, value, unit, reached } = goal;
  // A goal of the kind "N times faster than" has our row as `other`.
  const isTurned = goal.other?.variant.startsWith("glovebox") && !goal.ours?.variant.startsWith("glovebox");
  const [ours, other] = isTurned ? [goal.other, goal.ours] : [goal.ours, goal.other];
  const median = (row) => (row ? figure(row.p50, row.unit) : "");
  return [
    LABELS[what] ?? what,
    median(ours),
    other ? `${other.variant}: ${median(other)}` : "",
    figure(value, unit).trim(),
    `${limitOf(goal).trim()}${reached ? "" : ", not reached"}`,
  ];
}
