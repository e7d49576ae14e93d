import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { lstat, readdir, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { SandboxError } from "../../../../contracts/errors.js";

const PAUSE = 100;
const ATTEMPTS = 20;
/** Attempts after which a lock of a live git belongs to a process that `/proc` shows. */
const SHORT = 5;

/** Removes the lock of a ref that only Glovebox writes, if its git is gone. For the holder of the repository's lock. */
export async function removeStaleRefLock(gitDir: string, ref: string): Promise<void> {
  if (process.platform !== "linux") return;
  const path = join(gitDir, `${ref}.lock`);
  const first = await identify(path);
  if (first === undefined) return;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    await delay(PAUSE);
    if ((await identify(path)) !== first) return;
    if (attempt < SHORT || isGitAtWork(gitDir)) continue;
    await rm(path, { force: true });
    return;
  }
  throw new SandboxError("unavailable", `${path} exists, and a git is at work in the repository`, {
    operation: "remove",
    hint: "Try again when that git has finished.",
  });
}

/** As `removeStaleRefLock`, for every ref below a prefix that ends in a slash. */
export async function removeStaleRefLocks(gitDir: string, prefix: string): Promise<void> {
  const names = await readdir(join(gitDir, prefix)).catch(() => []);
  for (const name of names.filter((each) => each.endsWith(".lock"))) {
    await removeStaleRefLock(gitDir, `${prefix}${name.slice(0, -".lock".length)}`);
  }
}

async function identify(path: string): Promise<string | undefined> {
  const found = await lstat(path).catch(() => undefined);
  return found && `${found.ino} ${found.ctimeMs}`;
}

/** Whether a process called git works in the repository or its working tree. */
function isGitAtWork(gitDir: string): boolean {
  const place = basename(gitDir) === ".git" ? dirname(gitDir) : gitDir;
  return readdirSync("/proc").some((pid) => {
    if (!/^[0-9]+$/.test(pid)) return false;
    try {
      if (!readFileSync(`/proc/${pid}/comm`, "utf8").startsWith("git")) return false;
      const cwd = readlinkSync(`/proc/${pid}/cwd`);
      return cwd === place || cwd.startsWith(`${place}/`);
    } catch {
      return false;
    }
  });
}
