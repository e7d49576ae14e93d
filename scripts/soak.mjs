import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { build } from "./build.mjs";
import { takeCensus } from "./soak-census.mjs";
import { createLane } from "./soak-lane.mjs";
import { fitGrowth, sampleProcess } from "./soak-measure.mjs";

/**
 * Runs random operations and faults on sandboxes for a while. Each lane does the same for the same seed. Exits with 0 if
 * nothing failed, nothing was left behind and neither memory nor descriptors grew.
 */
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "1" },
    seconds: { type: "string" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    lanes: { type: "string", default: "2" },
    summary: { type: "boolean", default: false },
  },
});
const seconds = Number(values.seconds ?? Number(values.minutes) * 60);
const seed = Number(values.seed);
const lanes = Number(values.lanes);
if (!(seconds > 0) || !Number.isSafeInteger(seed) || !(lanes >= 1 && lanes <= 8)) {
  console.error("usage: soak [--minutes N | --seconds N] [--seed S] [--lanes 1..8] [--summary]");
  process.exit(2);
}
/** Operations of each lane between two measurements, for which everything is closed. */
const STRETCH = 10;
const replay = `npm run soak -- --seconds ${seconds} --seed ${seed} --lanes ${lanes}`;

if (!existsSync(join(root, "dist", "src", "index.js"))) await build();
const place = realpathSync(mkdtempSync(join(tmpdir(), "glovebox-soak-")));
for (const name of ["tmp", "home", "repo"]) mkdirSync(join(place, name));
process.env.GLOVEBOX_HOME = join(place, "home");
process.env.TMPDIR = join(place, "tmp");
const repo = makeRepository(join(place, "repo"));
const glovebox = await import(join(root, "dist", "src", "index.js"));
const { FAILPOINTS } = await import(join(root, "dist", "src", "machine", "failpoint.js"));

const before = takeCensus(place, repo, []);
console.log(`soak: seed ${seed}, ${lanes} lanes, ${seconds} s`);
const startedAt = performance.now();
let isStopped = false;
process.once("SIGINT", () => {
  isStopped = true;
});
const isOver = () => isStopped || performance.now() - startedAt > seconds * 1000;
const all = Array.from({ length: lanes }, (_, index) =>
  createLane({ seed: seed * 31 + index, name: `lane ${index}`, repo, glovebox, failpoints: FAILPOINTS, root }),
);
const samples = [];
let failure;
try {
  while (!isOver()) {
    // Wait for all lanes even if one failed: work in progress would look like leftovers.
    const ends = await Promise.allSettled(all.map((lane) => lane.run(STRETCH, isOver)));
    const failed = ends.find(({ status }) => status === "rejected");
    if (failed !== undefined) throw failed.reason;
    samples.push(await sampleProcess(all.reduce((sum, lane) => sum + lane.operations, 0)));
  }
} catch (error) {
  failure = error;
}
const operations = all.reduce((sum, lane) => sum + lane.operations, 0);
const took = (performance.now() - startedAt) / 1000;
const problems = failure === undefined ? [] : [String(failure?.stack ?? failure)];
await Promise.all(all.map((lane) => lane.close())).catch((error) => problems.push(String(error)));
await emptyHome().catch((error) => problems.push(String(error)));
const after = takeCensus(
  place,
  repo,
  all.flatMap((lane) => lane.ids),
);
for (const key of Object.keys(before)) {
  const [was, is] = [JSON.stringify(before[key]), JSON.stringify(after[key])];
  if (was !== is) problems.push(`left behind, ${key}: ${is} instead of ${was}`);
}
const growths = fitGrowth(samples);
if (growths.length === 0) console.log(`  too short to measure growth: ${samples.length} samples`);
for (const growth of growths) {
  console.log(`  ${growth.text}`);
  if (growth.isTooMuch) problems.push(`grows: ${growth.text}`);
}
console.log(`  ${operations} operations, ${(operations / took).toFixed(1)} a second`);
console.log(`  ${tally().join(", ")}`);
for (const [index, { marks }] of all.entries()) console.log(`  lane ${index} did: ${marks.slice(0, 20).join(" ")}`);
for (const problem of problems) console.log(`FAILED ${problem}`);
if (problems.length > 0) console.log(`repeat with: ${replay}`);
rmSync(place, { recursive: true, force: true });
if (values.summary) {
  const failed = problems.length > 0 ? 1 : 0;
  console.log(`summary: ${JSON.stringify({ passed: 1 - failed, failed, skipped: [] })}`);
}
process.exit(problems.length > 0 ? 1 : 0);

function tally() {
  const names = [...new Set(all.flatMap((lane) => [...lane.counts.keys()]))].sort();
  return names.map((name) => `${name} ${all.reduce((sum, lane) => sum + (lane.counts.get(name) ?? 0), 0)}`);
}

async function emptyHome() {
  for (const { id } of await glovebox.listSnapshots()) await glovebox.deleteSnapshot(id);
  const { failed } = await glovebox.reap({ cache: 0 });
  if (failed.length > 0) throw failed[0].error;
}

function makeRepository(path) {
  const git = (...args) =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@localhost", ...args], { cwd: path });
  git("init", "--quiet", "--initial-branch=main");
  for (let n = 0; n < 50; n++) writeFileSync(join(path, `file-${n}.txt`), `${n}\n`.repeat(100));
  writeFileSync(join(path, ".gitignore"), "ignored/\n");
  git("add", "-A");
  git("commit", "--quiet", "-m", "first");
  return path;
}
