import { readdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join, normalize } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { SandboxError } from "../../../../../contracts/errors.js";

const ROOT = "/sys/fs/cgroup/";
const ATTEMPTS = 50;

/** Kills what still runs in one of our control groups and removes it. Idempotent. */
export async function removeCgroup(path: string): Promise<void> {
  if (!path.startsWith(ROOT) || normalize(path) !== path || !path.includes("glovebox")) {
    throw new SandboxError("invalid_path", `Refusing to remove ${JSON.stringify(path)}: not a control group of ours`);
  }
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    if (await removeOnce(path)) return;
    await delay(20);
  }
  throw new SandboxError("unavailable", `Processes in ${path} don't end`, { operation: "remove" });
}

async function removeOnce(path: string): Promise<boolean> {
  const children = await readdir(path, { withFileTypes: true }).catch(absent);
  if (children === undefined) return true;
  for (const child of children) if (child.isDirectory()) await removeOnce(join(path, child.name));
  await writeFile(join(path, "cgroup.kill"), "1", { flag: "r+" }).catch(() => killListed(path));
  return await rmdir(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code === "ENOENT",
  );
}

/** For version 1, which has no `cgroup.kill`. */
async function killListed(path: string): Promise<void> {
  const listed = await readFile(join(path, "cgroup.procs"), "utf8").catch(() => "");
  for (const pid of listed.split("\n").map(Number)) {
    if (pid <= 1 || pid === process.pid) continue;
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has ended. If one has not, removing the group fails.
    }
  }
}

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}
