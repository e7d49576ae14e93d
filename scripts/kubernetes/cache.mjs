import { existsSync, mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildUnderLock } from "../locked-build.mjs";

/** Changes with the steps of the build, so that what was built by other steps is built anew. */
const RECIPE = `2-${process.arch}`;

/** With this code the build ends where there can be none; the reason is on standard error. */
export const NOT_HERE = 77;

/** The folder with the programs of a cluster. Builds them first if they are missing, which takes some minutes. */
export async function ensureKubernetes(onProgress = () => {}) {
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "glovebox", "kubernetes");
  const folder = join(cache, RECIPE);
  if (isBuilt(folder)) return folder;
  mkdirSync(cache, { recursive: true });
  const script = fileURLToPath(new URL("build.mjs", import.meta.url));
  try {
    await buildUnderLock(join(cache, "lock"), [script, folder], onProgress);
  } catch (error) {
    throw error.exitCode === NOT_HERE ? new ClusterNotPossible(error.message) : error;
  }
  return folder;
}

/** Whether a build has ended there; what it wrote last is the list of what it was made of. */
export function isBuilt(folder) {
  return existsSync(join(folder, "contents"));
}

/** This machine can have no cluster, whatever is tried. */
export class ClusterNotPossible extends Error {}
