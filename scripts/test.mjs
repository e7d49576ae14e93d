import { existsSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { whyNoEngine } from "./docker-engine.mjs";
import { BUSYBOX, DEBIAN, ensureArchive, FAILED_IMAGES, whyNoImage } from "./image-cache.mjs";
import { installDependencies, prepare, root } from "./prepare.mjs";
import { endAllOnInterrupt, run } from "./processes.mjs";
import { createScratch, environmentIn } from "./scratch.mjs";
import { expectSuccess, StepFailed, step } from "./step.mjs";
import { ensureExtras } from "./system-parts.mjs";

/** Other suites than vitest. Each prints a line `summary: {"passed":n,"failed":n,"skipped":[{"name":"","reason":""}]}`. */
const suites = [
  { name: "conformance as an ordinary user", script: "scripts/conformance-as-user.mjs" },
  { name: "soak", script: "scripts/soak.mjs", args: ["--seconds", "15", "--summary"] },
];

const startedAt = performance.now();
const total = { passed: 0, failed: 0, skipped: [], failures: [], slowest: [] };
const scratch = createScratch();
const env = environmentIn(scratch.path);

endAllOnInterrupt(clean);
await main();
clean();
report();

async function main() {
  // Without these some tests are skipped and report it. Before the build, which needs one of them.
  await step("parts that only some tests need", ensureExtras).catch(() => {});
  // Without each of these, a test is skipped and reports it.
  const install = () => installDependencies(join(root, "tests", "runtimes"));
  const runtimes = step("other runtimes", install, { isBeside: true }).catch(() => {});
  // npm hands the root's engine-strict down by the environment, which counts more than the folder's own settings.
  const installSdk = () => installDependencies(join(root, "tests", "ai-sdk"), "--engine-strict=false");
  const sdk = step("the AI SDK", installSdk, { isBeside: true }).catch(() => {});
  const installAws = () => installDependencies(join(root, "tests", "aws-sdk"));
  const aws = step("the AWS SDK", installAws, { isBeside: true }).catch(() => {});
  const images = buildImages();
  const fuzzer = step("guest under sanitizers", buildFuzzer, { isBeside: true }).catch(() => {});
  try {
    await prepare();
    total.passed += 1;
  } catch {
    total.failed += 1;
    return;
  } finally {
    await Promise.all([runtimes, sdk, aws, images, fuzzer]);
  }
  await Promise.all([runVitest(), runBeside()]);
}

/** Builds the images for Docker tests. A test whose image could not be built is skipped and prints the reason. */
async function buildImages() {
  if (whyNoEngine() !== undefined) return;
  const failed = {};
  for (const name of [BUSYBOX, DEBIAN].filter((each) => whyNoImage(each) === undefined)) {
    const work = async (progress) => {
      await ensureArchive(name, progress).catch((error) => {
        failed[name] = error.message;
        throw new StepFailed(error.message);
      });
    };
    await step(`image ${name}`, work, { isBeside: true }).catch(() => {});
  }
  env[FAILED_IMAGES] = JSON.stringify(failed);
}

/** Compiles the guest for the fuzz tests; if that fails, they fail too and show why. */
async function buildFuzzer() {
  if (process.platform !== "linux") return "not built: the guest runs on Linux only";
  const args = [join(root, "scripts", "fuzz-guest.mjs"), "--build"];
  expectSuccess(await run(process.execPath, args, { cwd: root, quiet: true, env }), "fuzz-guest");
}

/** Runs the other suites one after the other alongside vitest, because most tests spend time waiting. */
async function runBeside() {
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  for (const command of scripts.check.split(" && ")) await check(command);
  for (const suite of suites) await runSuite(suite);
}

async function check(command) {
  const path = `${join(root, "node_modules", ".bin")}${delimiter}${process.env.PATH}`;
  const work = async () => {
    const options = { cwd: root, quiet: true, env: { ...env, PATH: path } };
    expectSuccess(await run("sh", ["-c", command], options), command);
  };
  try {
    await step(command, work, { isBeside: true });
    total.passed += 1;
  } catch {
    total.failed += 1;
  }
}

async function runVitest() {
  // Not in run-vitest.mjs: a test runs that script while others load the bundle.
  const bundle = async () => await (await import("./bundle-tests.mjs")).bundleTests();
  try {
    await step("bundle of the tests", bundle, { isBeside: true });
  } catch {
    total.failed += 1;
    return;
  }
  const file = join(scratch.path, "tally.json");
  const [program, ...args] = scratch.inMemory([process.execPath, join(root, "scripts", "run-vitest.mjs"), file]);
  const { code } = await run(program, args, {
    cwd: root,
    env: { ...env, ...environmentIn(scratch.memory), GLOVEBOX_BUNDLED_TESTS: "1" },
  });
  const tally = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : { passed: 0, failed: 0, skipped: [] };
  add("vitest", code, tally);
}

async function runSuite({ name, script, args = [] }) {
  let tally = { passed: 0, failed: 0, skipped: [] };
  console.log(`\n${name}`);
  const onLine = (line) => {
    if (!line.startsWith("summary: ")) return true;
    tally = JSON.parse(line.slice("summary: ".length));
    return false;
  };
  // On the disk, unlike vitest, because users run sandboxes on a disk too.
  const { code } = await run(process.execPath, [join(root, script), ...args], { cwd: root, env, onLine });
  add(name, code, tally);
}

/** A suite that failed, or printed no summary, without a failed test counts as one failure. */
function add(name, code, { passed, failed, skipped, failures = [], slowest = [] }) {
  const silent = failed === 0 && (code !== 0 || passed + skipped.length === 0);
  if (silent) console.log(`  FAILED ${name}: exit code ${code}, ${passed} tests passed, none failed`);
  total.passed += passed;
  total.failed += silent ? 1 : failed;
  total.skipped.push(...skipped);
  const isUnnamed = failed > 0 && failures.length === 0;
  total.failures.push(...(isUnnamed ? [{ name, error: "its own lines are further up" }] : failures));
  total.slowest.push(...slowest);
}

function clean() {
  try {
    scratch.clean();
  } catch (error) {
    console.log(`  FAILED clean up: ${error.message}`);
    total.failed += 1;
  }
}

function report() {
  console.log("");
  if (total.slowest.length > 0) console.log(`slowest test files:\n${total.slowest.join("\n")}`);
  console.log(`total time ${Math.round((performance.now() - startedAt) / 1000)} s`);
  for (const { name, reason } of total.skipped) console.log(`not run: ${name}: ${reason}`);
  // Last, for readers who see only the end of a long output.
  for (const { name, error } of total.failures) console.log(`\nFAILED ${name}\n${error}`);
  console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped.length} skipped`);
  process.exitCode = total.failed > 0 ? 1 : 0;
}
