import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";

/** Everything that sandboxes could leave behind. `ids` are all sandboxes so far, for their control groups. */
export function takeCensus(place, repo, ids) {
  const run = (program, ...args) => execFileSync(program, args, { cwd: repo }).toString().trim();
  const groups = ["", "memory", "cpu", "pids", "unified"].map((name) => join("/sys/fs/cgroup", name, "glovebox"));
  return {
    processes: processesWith(basename(place)),
    temporary: readdirSync(join(place, "tmp")),
    // The shared files of /etc and the views of repositories stay.
    home: run("find", join(place, "home"), "-type", "f", "!", "-path", "*/home/etc/*", "!", "-path", "*/home/views/*"),
    refs: run("git", "for-each-ref"),
    worktrees: run("git", "worktree", "list"),
    git: run(
      "find",
      join(repo, ".git"),
      "(",
      "-name",
      "*.lock",
      "-o",
      "-path",
      "*/worktrees/*",
      "-o",
      "-path",
      "*/.git/glovebox-*",
      ")",
      "-type",
      "f",
    ),
    config: readFileSync(join(repo, ".git", "config"), "utf8"),
    fsck: run("git", "fsck", "--full", "--strict", "--no-dangling", "--no-progress"),
    groups: ids.flatMap((id) => groups.map((group) => join(group, id))).filter((path) => existsSync(path)),
    mounts: readFileSync("/proc/self/mountinfo", "utf8")
      .split("\n")
      .filter((line) => line.includes(place)),
  };
}

function processesWith(text) {
  const found = [];
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)) {
    try {
      const argv = readFileSync(`/proc/${pid}/cmdline`, "utf8");
      if (argv.includes(text)) found.push(`${pid}: ${argv.replaceAll("\0", " ").slice(0, 200)}`);
    } catch {
      // It has ended.
    }
  }
  return found;
}
