import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { installDependencies, prepare, root } from "./prepare.mjs";
import { endAllOnInterrupt, run } from "./processes.mjs";
import { expectSuccess, step } from "./step.mjs";
import { ensureExtras } from "./system-parts.mjs";

/** Suites beside vitest. Each prints a line `summary: {"passed":n,"failed":n,"skipped":[{"name":"","reason":""}]}`. */
const suites = [
  { name: "conformance as an ordinary user", script: "scripts/conformance-as-user.mjs" },
  { name: "soak", script: "scripts/soak.mjs", args: ["--seconds", "20", "--summary"] },
];

const total = { passed: 0, failed: 0, skipped: [] };
const scratch = mkdtempSync(join(tmpdir(), "glovebox-test-"));
// Sandboxes of other users work below it.
chmodSync(scratch, 0o755);
const env = { ...process.env, TMPDIR: scratch, GLOVEBOX_HOME: join(scratch, "home") };

endAllOnInterrupt(clean);
await main();
clean();
report();

async function main() {
  // Without them some tests are skipped, and say so. Before the build, which needs one of them.
  await step("parts that only some tests need", ensureExtras).catch(() => {});
  try {
    await prepare();
    total.passed += 1;
  } catch {
    total.failed += 1;
    return;
  }
  // Without it one test is skipped, and says so.
  await step("a second Node", () => installDependencies(join(root, "tests", "node-24"))).catch(() => {});
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  for (const command of [scripts.check, scripts["check:package"]].flatMap((text) => text.split(" && "))) {
    await check(command);
  }
  await runVitest();
  for (const suite of suites) await runSuite(suite);
}

async function check(command) {
  const path = `${join(root, "node_modules", ".bin")}${delimiter}${process.env.PATH}`;
  try {
    await step(command, async () => {
      const options = { cwd: root, quiet: true, env: { ...env, PATH: path } };
      expectSuccess(await run("sh", ["-c", command], options), command);
    });
    total.passed += 1;
  } catch {
    total.failed += 1;
  }
}

async function runVitest() {
  const file = join(scratch, "tally.json");
  const { code } = await run(process.execPath, [join(root, "scripts", "run-vitest.mjs"), file], { cwd: root, env });
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
  const { code } = await run(process.execPath, [join(root, script), ...args], { cwd: root, env, onLine });
  add(name, code, tally);
}

/** A suite that failed, or that had nothing to say, without a failed test to show for it counts as one. */
function add(name, code, { passed, failed, skipped }) {
  const silent = failed === 0 && (code !== 0 || passed + skipped.length === 0);
  if (silent) console.log(`  FAILED ${name}: exit code ${code}, ${passed} tests passed, none failed`);
  total.passed += passed;
  total.failed += silent ? 1 : failed;
  total.skipped.push(...skipped);
}

/** Removes the scratch folder, unless something is still mounted below it: that would remove somebody else's files. */
function clean() {
  const mounted = existsSync("/proc/self/mountinfo") && readFileSync("/proc/self/mountinfo", "utf8").includes(scratch);
  if (mounted) {
    console.log(`  FAILED clean up: something is still mounted below ${scratch}`);
    total.failed += 1;
    return;
  }
  const left = readdirSync(scratch).filter((name) => !["tally.json", "home"].includes(name));
  if (left.length > 0) console.log(`\n  left behind by tests and removed now: ${left.slice(0, 10).join(", ")}`);
  // Node's own removal overflows its stack on trees as deep as some tests make them.
  if (existsSync("/bin/rm")) spawnSync("/bin/rm", ["-rf", "--one-file-system", "--", scratch]);
  else rmSync(scratch, { recursive: true, force: true });
}

function report() {
  console.log("");
  for (const { name, reason } of total.skipped) console.log(`not run: ${name}: ${reason}`);
  console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped.length} skipped`);
  process.exitCode = total.failed > 0 ? 1 : 0;
}
