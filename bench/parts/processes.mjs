import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { promisify } from "node:util";

/** Starts a program the way most code does, and gives its output. */
export const start = promisify(execFile);

/** Every process below one, by id. */
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

/** Memory in MB that processes have, each shared page counted once among those that share it. */
export function proportionalMemory(pids) {
  return pids.reduce((sum, pid) => sum + kilobytes(read(`/proc/${pid}/smaps_rollup`), "Pss"), 0) / 1024;
}

/** The most memory in MB that a process ever had, since `forgetPeak`. */
export function peakMemory(pid = process.pid) {
  return kilobytes(read(`/proc/${pid}/status`), "VmHWM") / 1024;
}

function kilobytes(text, field) {
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(text)?.[1] ?? 0);
}

/** A process may be gone by the time it is looked at. */
function read(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
