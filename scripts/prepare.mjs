import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "./build.mjs";
import { npm } from "./processes.mjs";
import { expectSuccess, StepFailed, step } from "./step.mjs";
import { ensureSystemParts } from "./system-parts.mjs";

/** The folder of the repository. */
export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Brings a fresh clone, or an old one, to where everything is installed and built. */
export async function prepare() {
  await step("system parts", ensureSystemParts);
  await build(step("dependencies", () => installDependencies(root)));
}

/** Installs what the lock file of `folder` names, unless that was done since the file last changed. `options` are more of npm's. */
export async function installDependencies(folder, ...options) {
  const lock = join(folder, "package-lock.json");
  const installed = join(folder, "node_modules", ".package-lock.json");
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(lock).mtimeMs) return "all there";
  // `npm ci` refuses a lock file without the binaries of every other system, and not every package host has those.
  const quick = ["--prefer-offline", "--no-audit", "--no-fund"];
  const args = ["install", "--no-save", "--loglevel=error", ...quick, ...options];
  expectSuccess(await npm(args, { cwd: folder, quiet: true }), "npm install");
  const strays = findStrays(readPackages(lock), readPackages(installed));
  if (strays.length > 0) throw new StepFailed(`installed, but not what package-lock.json names: ${strays.join(", ")}`);
  return "installed";
}

function readPackages(file) {
  return JSON.parse(readFileSync(file, "utf8")).packages;
}

/** What was installed in another version, or with other contents, than the lock file says. */
function findStrays(locked, installed) {
  return Object.entries(installed)
    .filter(
      ([name, { version, integrity }]) => locked[name]?.version !== version || locked[name].integrity !== integrity,
    )
    .map(([name, { version }]) => `${name}@${version}`);
}
