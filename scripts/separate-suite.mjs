import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { installDependencies, prepare, root } from "./prepare.mjs";
import { endAllOnInterrupt, run } from "./processes.mjs";
import { createScratch, environmentIn } from "./scratch.mjs";
import { step } from "./step.mjs";

/**
 * Runs a suite that is too slow, or needs packages that are too large, for `npm test`. `packages` are folders whose packages it uses; those that
 * can't be installed make tests print why they did not run. `install` gets what else they need; `show` prints more of the result. Arguments of this process are file names, as for vitest.
 */
export async function runSeparateSuite({ config, packages, install = async () => {}, show = () => {} }) {
  const startedAt = performance.now();
  const scratch = createScratch();
  endAllOnInterrupt(scratch.clean);
  await prepare();
  await install();
  for (const [name, folder] of packages) {
    // Some declare a newer Node; they bring a program of their own, or are run by the other Node.
    await step(name, () => installDependencies(folder, "--engine-strict=false")).catch(() => {});
  }
  const file = join(scratch.path, "tally.json");
  const args = [join(root, "scripts", "run-vitest.mjs"), file, `--config=${config}`];
  const env = environmentIn(scratch.path);
  const { code } = await run(process.execPath, [...args, ...process.argv.slice(2)], { cwd: root, env });
  const none = { passed: 0, failed: 1, skipped: [], failures: [] };
  const tally = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : none;
  const { passed, failed, skipped, failures } = tally;
  scratch.clean();
  console.log(`\ntotal time ${Math.round((performance.now() - startedAt) / 1000)} s`);
  show(tally);
  for (const { name, reason } of skipped) console.log(`not run: ${name}: ${reason}`);
  for (const { name, error } of failures) console.log(`\nFAILED ${name}\n${error}`);
  console.log(`${passed} passed, ${failed} failed, ${skipped.length} skipped`);
  process.exitCode = failed > 0 || code !== 0 ? 1 : 0;
}
