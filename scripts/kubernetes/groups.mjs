import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

/** The hierarchies of control groups version 1: where each is mounted, and the options that mount it again. Empty where there is none with memory. */
export function hierarchies() {
  const found = new Map();
  for (const line of readFileSync("/proc/self/mountinfo", "utf8").trim().split("\n")) {
    const [mount, rest] = line.split(" - ");
    const [type, , words] = rest.split(" ");
    if (type !== "cgroup") continue;
    const options = words.split(",").filter((word) => !/^(rw|ro|xattr|clone_children|release_agent.*)$/.test(word));
    const folder = mount.split(" ")[4];
    if (!found.has(options.join()))
      found.set(options.join(), { folder, name: basename(folder), options: options.join() });
  }
  const all = [...found.values()];
  return all.some(({ options }) => options.split(",").includes("memory")) ? all : [];
}

/** Makes a group below an existing one, with what a group needs before a process can enter it. */
export function makeGroup(folder) {
  mkdirSync(folder);
  for (const name of ["cpuset.cpus", "cpuset.mems"]) {
    const file = join(folder, name);
    if (existsSync(file)) writeFileSync(file, readFileSync(join(dirname(folder), name)));
  }
  // A group competes for the processor as if it were one process, and this one holds a whole cluster.
  if (existsSync(join(folder, "cpu.shares"))) writeFileSync(join(folder, "cpu.shares"), "8192");
}

/** Shell words that take the shell itself into groups. */
export function enterGroups(folders) {
  return folders.map((folder) => `echo 0 > '${folder}/cgroup.procs'`).join(" && ");
}

/** The processes in a group and below it. */
export function membersOf(folder) {
  return groupsBelow(folder).flatMap((each) => {
    try {
      return readFileSync(join(each, "cgroup.procs"), "utf8").split("\n").filter(Boolean).map(Number);
    } catch {
      return [];
    }
  });
}

/** Removes groups and all below them, once their processes have gone; returns those that are still there after the patience. */
export async function removeGroups(folders, patience = 60_000) {
  const end = performance.now() + patience;
  for (;;) {
    for (const folder of folders.flatMap(groupsBelow)) {
      try {
        rmdirSync(folder);
      } catch {
        // A process is still about to end in it.
      }
    }
    const left = folders.filter((folder) => existsSync(folder));
    if (left.length === 0 || performance.now() > end) return left;
    await delay(30);
  }
}

/** A group and all below it, the deepest first. */
function groupsBelow(folder) {
  try {
    const entries = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    return [...entries.flatMap(({ name }) => groupsBelow(join(folder, name))), folder];
  } catch {
    return [];
  }
}
