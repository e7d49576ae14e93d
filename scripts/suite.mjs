import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { prepare, root } from "./prepare.mjs";
import { endAllOnInterrupt, run } from "./processes.mjs";
import { createScratch, environmentIn } from "./scratch.mjs";

/**
 * Runs the tests of a configuration of vitest that `npm test` does without. `install` gets what they need and is not in the packages of this
 * repository. What is not run is printed with its reason. Arguments of the process are file names, as for vitest.
 */
export async function runSuite(config, install) {
  const startedAt = performance.now();
  const scratch = createScratch();
  endAllOnInterrupt(scratch.clean);
  await prepare();
  await install();
  const file = join(scratch.path, "tally.json");
  const args = [join(root, "scripts", "run-vitest.mjs"), file, `--config=${config}`];
  const env = environmentIn(scratch.path);
  const { code } = await run(process.execPath, [...args, ...process.argv.slice(2)], { cwd: root, env });
  const none = { passed: 0, failed: 1, skipped: [], failures: [] };
  const { passed, failed, skipped, failures } = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : none;
  scratch.clean();
  console.log(`\ntotal time ${Math.round((performance.now() - startedAt) / 1000)} s`);
  for (const { name, reason } of skipped) console.log(`not run: ${name}: ${reason}`);
  for (const { name, error } of failures) console.log(`\nFAILED ${name}\n${error}`);
  console.log(`${passed} passed, ${failed} failed, ${skipped.length} skipped`);
  process.exitCode = failed > 0 || code !== 0 ? 1 : 0;
}
