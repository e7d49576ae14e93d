import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "./build.mjs";
import { npm } from "./processes.mjs";
import { expectSuccess, StepFailed, step } from "./step.mjs";
import { ensureSystemParts } from "./system-parts.mjs";

/** The root of the repository. */
export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Installs and builds everything in a clone, fresh or old. */
export async function prepare() {
  await step("system parts", ensureSystemParts);
  await build(step("dependencies", () => installDependencies(root)));
}

/** Installs the packages in the lock file of `folder`, unless it has not changed since. `options` go to npm. */
export async function installDependencies(folder, ...options) {
  const lock = join(folder, "package-lock.json");
  const installed = join(folder, "node_modules", ".package-lock.json");
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(lock).mtimeMs) return "up to date";
  // `npm ci` refuses a lock file that lacks the binaries of other systems, and not every package host has those.
  const args = ["install", "--no-save", "--loglevel=error", "--no-audit", "--no-fund", ...options];
  const quick = await npm([...args, "--prefer-offline"], { cwd: folder, quiet: true });
  // What npm remembers of a package may be older than the lock file.
  const result = quick.code === 0 ? quick : await npm(args, { cwd: folder, quiet: true });
  expectSuccess(result, "npm install");
  const strays = findStrays(readPackages(lock), readPackages(installed));
  if (strays.length > 0) throw new StepFailed(`installed packages differ from package-lock.json: ${strays.join(", ")}`);
  return "installed";
}

function readPackages(file) {
  return JSON.parse(readFileSync(file, "utf8")).packages;
}

/** Packages whose installed version or contents differ from the lock file. */
function findStrays(locked, installed) {
  return Object.entries(installed)
    .filter(
      ([name, { version, integrity }]) => locked[name]?.version !== version || locked[name].integrity !== integrity,
    )
    .map(([name, { version }]) => `${name}@${version}`);
}
