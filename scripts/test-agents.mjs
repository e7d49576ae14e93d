import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { markdownTable } from "./generated-section.mjs";
import { installDependencies, prepare, root } from "./prepare.mjs";
import { endAllOnInterrupt, run } from "./processes.mjs";
import { createScratch, environmentIn } from "./scratch.mjs";
import { step } from "./step.mjs";

/**
 * Runs the real coding agents from npm against a scripted model on this machine: each in a sandbox, by the harness. An agent whose package
 * can't be installed is not run, and printed as such. Arguments are file names, as for vitest.
 */
const startedAt = performance.now();
const scratch = createScratch();
endAllOnInterrupt(scratch.clean);
await prepare();
for (const [name, folder] of [
  ["other runtimes", join(root, "tests", "runtimes")],
  ["the agents", join(root, "tests", "agents", "programs")],
]) {
  // The agents that declare Node 22 bring a program of their own, or are run by the other Node.
  await step(name, () => installDependencies(folder, "--engine-strict=false")).catch(() => {});
}
const file = join(scratch.path, "tally.json");
const args = [join(root, "scripts", "run-vitest.mjs"), file, "--config=vitest.agents.config.ts"];
const env = environmentIn(scratch.path);
const { code } = await run(process.execPath, [...args, ...process.argv.slice(2)], { cwd: root, env });
const none = { passed: 0, failed: 1, skipped: [], failures: [], cells: [] };
const { passed, failed, skipped, failures, cells } = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : none;
scratch.clean();
console.log(`\ntotal time ${Math.round((performance.now() - startedAt) / 1000)} s`);
const matrix = cells.filter(({ file }) => file.endsWith("matrix.agents.ts"));
if (matrix.length > 0) console.log(`\n${tableOf(matrix)}\n`);
for (const { name, reason } of skipped) console.log(`not run: ${name}: ${reason}`);
for (const { name, error } of failures) console.log(`\nFAILED ${name}\n${error}`);
console.log(`${passed} passed, ${failed} failed, ${skipped.length} skipped`);
process.exitCode = failed > 0 || code !== 0 ? 1 : 0;

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
