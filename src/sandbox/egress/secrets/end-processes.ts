import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";

/** Milliseconds. */
const PATIENCE = 1_000;
const PAUSE = 20;

/**
 * Kills a process group and, on Linux, everything that has a text in its environment, in whatever session it is by now. Goes on until nothing is left,
 * for a second at most.
 */
export async function endProcesses(group: number | undefined, mark: string): Promise<void> {
  if (group === undefined) return;
  kill(-group);
  const end = performance.now() + PATIENCE;
  for (let left = processesWith(mark); left.length > 0 && performance.now() < end; left = processesWith(mark)) {
    for (const pid of left) kill(pid);
    await wait(PAUSE);
  }
}

function processesWith(mark: string): number[] {
  const pids = names("/proc").map(Number);
  return pids.filter((pid) => pid > 0 && environmentOf(pid).includes(mark));
}

function names(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

/** Empty for a process that is gone, or another user's. */
function environmentOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1");
  } catch {
    return "";
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It is gone already.
  }
}
