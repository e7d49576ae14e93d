import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { promisify } from "node:util";

/** Starts a program the way most code does, and returns its output. */
export const start = promisify(execFile);

/** The ids of all descendants of a process. */
export function descendants(of = process.pid) {
  const children = new Map();
  for (const name of readdirSync("/proc").filter((entry) => /^\d+$/.test(entry))) {
    const stat = read(`/proc/${name}/stat`);
    const parent = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
    children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
  }
  const found = [];
  const visit = (pid) => {
    for (const child of children.get(pid) ?? []) {
      found.push(child);
      visit(child);
    }
  };
  visit(of);
  return found;
}

/** The memory of processes in MB, with each shared page divided among those that share it. */
export function proportionalMemory(pids) {
  return pids.reduce((sum, pid) => sum + kilobytes(read(`/proc/${pid}/smaps_rollup`), "Pss"), 0) / 1024;
}

/** The peak memory of a process in MB. */
export function peakMemory(pid = process.pid) {
  return kilobytes(read(`/proc/${pid}/status`), "VmHWM") / 1024;
}

function kilobytes(text, field) {
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(text)?.[1] ?? 0);
}

/** Tolerates a process that has ended meanwhile. */
function read(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
