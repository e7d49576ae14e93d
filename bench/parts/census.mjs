import { existsSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { descendants } from "./processes.mjs";
import { git } from "./repositories.mjs";

const GROUPS = ["", "memory", "cpu", "pids"].map((name) => join("/sys/fs/cgroup", name, "glovebox"));

/** Counts everything that sandboxes of this process leave on the host; `ids` are all sandboxes so far. */
export async function census(repo, ids = []) {
  const lines = (text) => text.split("\n").filter(Boolean).length;
  return {
    processes: descendants().length,
    mounts: readFileSync("/proc/self/mountinfo", "utf8")
      .split("\n")
      .filter((line) => line.includes(dirname(process.env.GLOVEBOX_HOME))).length,
    folders: readdirSync(tmpdir()).length,
    records: countIn(join(process.env.GLOVEBOX_HOME, "sandboxes")),
    cgroups: ids.flatMap((id) => GROUPS.map((group) => join(group, id))).filter((path) => existsSync(path)).length,
    descriptors: readdirSync("/proc/self/fd").length,
    worktrees: lines(await git(repo, "worktree", "list")),
    branches: lines(await git(repo, "branch", "--list")),
  };
}

/** Only the directories: the files of a control group are its settings. */
function countIn(path) {
  return existsSync(path)
    ? readdirSync(path, { withFileTypes: true }).filter((entry) => entry.isDirectory()).length
    : 0;
}
