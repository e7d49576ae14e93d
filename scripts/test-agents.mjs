import { join } from "node:path";
import { markdownTable } from "./generated-section.mjs";
import { root } from "./prepare.mjs";
import { runSeparateSuite } from "./separate-suite.mjs";

/**
 * Runs the real coding agents from npm against a scripted model on this machine: each in a sandbox, by the harness. An agent whose package
 * can't be installed is not run, and printed as such.
 */
await runSeparateSuite({
  config: "vitest.agents.config.ts",
  packages: [
    ["other runtimes", join(root, "tests", "runtimes")],
    ["the agents", join(root, "tests", "agents", "programs")],
  ],
  show({ cells = [] }) {
    const matrix = cells.filter(({ file }) => file.endsWith("matrix.agents.ts"));
    if (matrix.length > 0) console.log(`\n${tableOf(matrix)}\n`);
  },
});

/** Each case in a line, with what became of it for each agent. */
function tableOf(cells) {
  const columns = [...new Set(cells.map(({ column }) => column))];
  const words = { passed: "ok", skipped: "not run", failed: "FAILED" };
  const rows = [...new Set(cells.map(({ row }) => row))].map((row) => {
    const stateOf = (column) => cells.find((cell) => cell.row === row && cell.column === column)?.state;
    return [row, ...columns.map((column) => words[stateOf(column)] ?? "not run")];
  });
  return markdownTable([["", ...columns], ...rows]);
}
