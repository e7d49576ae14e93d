import { spawn } from "node:child_process";
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readdirSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { buildUnderLock } from "./locked-build.mjs";
import { makeBusybox, makeDebian } from "./make-image.mjs";
import { hasCommand } from "./system-parts.mjs";

/** Images for tests and benchmarks, made from Debian packages without a registry, and cached between runs. */
const IMAGES = {
  "glovebox-test/busybox:1": { file: "busybox-3.tar", make: makeBusybox, needs: ["busybox"] },
  "glovebox-test/debian:1": { file: "debian-2.tar", make: makeDebian, needs: ["debootstrap"] },
};

export const BUSYBOX = "glovebox-test/busybox:1";
export const DEBIAN = "glovebox-test/debian:1";

/** What every build needs: a lock and namespaces that end with their owner. */
const TOOLS = ["flock", "setpriv", "unshare", "tar"];
const PREFIX = "building-";

/** Set by `npm test`: the reason, by name, for each image that could not be built. */
export const FAILED_IMAGES = "GLOVEBOX_TEST_FAILED_IMAGES";

/** Why an image isn't available; undefined if it is, or can be built. */
export function whyNoImage(name) {
  if (existsSync(archiveOf(name))) return undefined;
  const missing = [...IMAGES[name].needs, ...TOOLS].filter((command) => !hasCommand(command));
  if (missing.length > 0) return `not installed: ${missing.join(", ")}`;
  return JSON.parse(process.env[FAILED_IMAGES] || "{}")[name];
}

/**
 * Path of an image's archive. Builds it first if it is missing, in a child process that ends with this one; only one builder
 * runs at a time. `onProgress` gets each phase of the build.
 */
export async function ensureArchive(name, onProgress = () => {}) {
  const archive = archiveOf(name);
  if (existsSync(archive)) return archive;
  const lock = join(cacheFolder(), "lock");
  await buildUnderLock(lock, [fileURLToPath(import.meta.url), name], onProgress).catch((error) => {
    throw new Error(`${name} could not be built: ${error.message}`);
  });
  return archive;
}

function archiveOf(name) {
  return join(cacheFolder(), IMAGES[name].file);
}

function cacheFolder() {
  const folder = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "glovebox", "test-images");
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** Runs under the lock. Writes the archive atomically; first removes the leftovers of killed builds. */
async function build(name) {
  const archive = archiveOf(name);
  // Another builder may have built it while this one waited for the lock.
  if (existsSync(archive)) return;
  const folder = cacheFolder();
  for (const left of readdirSync(folder).filter((entry) => entry.startsWith(PREFIX) || /\.tar\.\d+$/.test(entry))) {
    remove(join(folder, left));
  }
  const scratch = join(folder, `${PREFIX}${process.pid}`);
  const root = join(scratch, "root");
  const packed = join(scratch, "packed.tar");
  const end = new AbortController();
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => end.abort(new Error(signal)));
  try {
    mkdirSync(root, { recursive: true });
    await IMAGES[name].make(root, { onPhase: (phase) => console.log(phase), signal: end.signal });
    console.log("packing");
    await run("tar", ["-C", root, "--numeric-owner", "--exclude=./dev/*", "-cf", packed, "."], end.signal);
    flush(packed);
    renameSync(packed, archive);
  } finally {
    remove(scratch);
  }
}

async function run(program, args, signal) {
  const child = spawn(program, args, { stdio: ["ignore", "ignore", "inherit"], signal, killSignal: "SIGKILL" });
  const code = await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  if (code !== 0) throw new Error(`${program} ended with ${code}`);
}

function flush(path) {
  const file = openSync(path, "r");
  fsyncSync(file);
  closeSync(file);
}

function remove(path) {
  rmSync(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  await build(process.argv[2]).catch((error) => {
    console.error(error.message);
    process.exitCode = 1;
  });
}
