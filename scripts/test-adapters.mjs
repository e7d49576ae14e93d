import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { installDependencies, prepare, root } from "./prepare.mjs";
import { endAllOnInterrupt, npm, run } from "./processes.mjs";
import { createScratch, environmentIn } from "./scratch.mjs";
import { expectSuccess, step } from "./step.mjs";

/**
 * Runs the adapters with the agent frameworks from npm, at the versions in `tests/adapters/packages`. A file of tests with a line
 * `// node 22: <reason>` is run by Node 22, which is one of these packages, if this Node is older. What can't be installed is printed as not run.
 * Arguments are names of adapters. With `--newest` it takes the newest version of each framework instead, and prints which these are.
 */
const startedAt = performance.now();
const folder = join(root, "tests", "adapters");
const pinned = join(folder, "packages");
const node22 = join(pinned, "node_modules", `node-linux-${process.arch}`, "bin", "node");
const isNewest = process.argv.includes("--newest");
const wanted = process.argv.slice(2).filter((word) => !word.startsWith("--"));
const total = { passed: 0, failed: 0, skipped: [], failures: [] };
const scratch = createScratch();
endAllOnInterrupt(scratch.clean);
await prepare();
let packages = pinned;
const isInstalled = await step("the frameworks", install).then(
  () => true,
  () => false,
);

const files = readdirSync(folder).filter((name) => name.endsWith(".adapter.ts") && isWanted(name));
const newer = isOld() ? files.filter((name) => /^\/\/ node 22: /m.test(readFileSync(join(folder, name), "utf8"))) : [];
if (files.length === 0) fail(`no adapter is named ${wanted.join(" or ")}`);
else if (!isInstalled) skip(files, "npm could not install tests/adapters/packages");
else {
  await runVitest(
    process.execPath,
    files.filter((name) => !newer.includes(name)),
  );
  if (existsSync(node22)) await runVitest(node22, newer);
  else skip(newer, "the package with Node 22 is not installed");
}

scratch.clean();
console.log(`\ntotal time ${Math.round((performance.now() - startedAt) / 1000)} s`);
for (const { name, reason } of total.skipped) console.log(`not run: ${name}: ${reason}`);
for (const { name, error } of total.failures) console.log(`\nFAILED ${name}\n${error}`);
console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped.length} skipped`);
process.exitCode = total.failed > 0 ? 1 : 0;

/** Some frameworks declare Node 22, which npm would refuse. */
async function install() {
  const note = await installDependencies(pinned, "--engine-strict=false");
  if (!isNewest) return note;
  packages = join(scratch.path, "newest");
  const { dependencies } = JSON.parse(readFileSync(join(pinned, "package.json"), "utf8"));
  const newest = {};
  // By name alone, npm would choose an old version that fits this Node.
  for (const name of Object.keys(dependencies)) {
    const result = await npm(["view", name, "dist-tags.latest"], { cwd: root, quiet: true });
    expectSuccess(result, `npm view ${name}`);
    newest[name] = result.output.trim().split("\n").at(-1);
  }
  const held = await installTogether(newest, dependencies);
  const changed = Object.keys(newest).filter((name) => newest[name] !== dependencies[name]);
  return [
    ...changed.map((name) => `${name} ${dependencies[name]} -> ${newest[name]}`),
    ...held.map((name) => `${name} stays: its newest can't be installed with the others`),
    ...(changed.length + held.length === 0 ? ["all are the newest"] : []),
  ].join(", ");
}

/** Installs these versions. Those that npm says don't go together become the pinned ones; gives their names. */
async function installTogether(versions, pinnedVersions) {
  const held = [];
  mkdirSync(packages);
  for (;;) {
    writeFileSync(join(packages, "package.json"), JSON.stringify({ private: true, dependencies: versions }));
    const args = ["install", "--engine-strict=false", "--no-audit", "--no-fund", "--loglevel=error"];
    const result = await npm(args, { cwd: packages, quiet: true });
    const isBlamed = (name) =>
      versions[name] !== pinnedVersions[name] &&
      result.output.includes(`${name}@"${versions[name]}" from the root project`);
    const blamed = result.code === 0 ? [] : Object.keys(versions).filter(isBlamed);
    if (blamed.length === 0) {
      expectSuccess(result, "npm install");
      return held;
    }
    for (const name of blamed) versions[name] = pinnedVersions[name];
    held.push(...blamed);
  }
}

function isWanted(name) {
  return wanted.length === 0 || wanted.some((word) => name.startsWith(word));
}

function isOld() {
  return Number(process.versions.node.split(".")[0]) < 22;
}

async function runVitest(node, names) {
  if (names.length === 0) return;
  console.log(`\n${names.join(", ")} on ${node === process.execPath ? `Node ${process.versions.node}` : "Node 22"}`);
  const tally = join(scratch.path, `tally-${total.passed}-${names.length}.json`);
  const script = [join(root, "scripts", "run-vitest.mjs"), tally, "--config=vitest.adapters.config.ts"];
  const env = { ...environmentIn(scratch.path), GLOVEBOX_ADAPTER_PACKAGES: packages };
  const { code } = await run(node, [...script, ...names.map((name) => `/${name}`)], { cwd: root, env });
  const { passed, failed, skipped, failures } = existsSync(tally)
    ? JSON.parse(readFileSync(tally, "utf8"))
    : { passed: 0, failed: 0, skipped: [], failures: [] };
  total.passed += passed;
  total.failed += failed;
  total.skipped.push(...skipped);
  total.failures.push(...failures);
  if (failed === 0 && (code !== 0 || passed + skipped.length === 0)) fail(`vitest ended with ${code} and no result`);
}

function skip(names, reason) {
  for (const name of names) total.skipped.push({ name, reason });
}

function fail(error) {
  total.failed += 1;
  total.failures.push({ name: "test:adapters", error });
}
