import { existsSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { descendants } from "./processes.mjs";
import { git } from "./repositories.mjs";

/** Counts everything that a sandbox makes outside of itself. */
export async function census(repo) {
  const lines = (text) => text.split("\n").filter(Boolean).length;
  return {
    processes: descendants().length,
    mounts: lines(readFileSync("/proc/self/mountinfo", "utf8")),
    folders: readdirSync(tmpdir()).length,
    records: countIn(join(process.env.GLOVEBOX_HOME, "sandboxes")),
    cgroups: ["", "memory", "cpu", "pids"].reduce(
      (sum, name) => sum + countIn(join("/sys/fs/cgroup", name, "glovebox")),
      0,
    ),
    descriptors: readdirSync("/proc/self/fd").length,
    worktrees: lines(await git(repo, "worktree", "list")),
    branches: lines(await git(repo, "branch", "--list")),
  };
}

/** Entries that are directories: in a control group the rest are its settings. */
function countIn(path) {
  return existsSync(path)
    ? readdirSync(path, { withFileTypes: true }).filter((entry) => entry.isDirectory()).length
    : 0;
}
