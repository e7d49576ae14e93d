import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "./build.mjs";
import { npm } from "./processes.mjs";
import { expectSuccess, step } from "./step.mjs";
import { ensureSystemParts } from "./system-parts.mjs";

/** The folder of the repository. */
export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Brings a fresh clone, or an old one, to where everything is installed and built. */
export async function prepare() {
  await step("dependencies", () => installDependencies(root));
  await step("system parts", ensureSystemParts);
  await build();
}

/** Installs what the lock file of `folder` names, unless that was done since the file last changed. */
export async function installDependencies(folder) {
  const lock = join(folder, "package-lock.json");
  const installed = join(folder, "node_modules", ".package-lock.json");
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(lock).mtimeMs) return "all there";
  expectSuccess(await npm(["ci", "--loglevel=error"], { cwd: folder, quiet: true }), "npm ci");
  return "installed";
}
