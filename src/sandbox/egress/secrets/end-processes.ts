import { setTimeout as wait } from "node:timers/promises";
import { findMarked } from "../../../machine/orphans.js";

/** Milliseconds. */
const PATIENCE = 1_500;
const PAUSE = 20;
const NOBODY = { found: [], isCertain: true };

/**
 * Kills a process group and, on Linux, everything that has a variable, as `NAME=value`, in whatever session it is by now. Goes on until nothing is left,
 * for one and a half seconds at most.
 */
export async function endProcesses(group: number | undefined, mark: string): Promise<void> {
  if (group === undefined) return;
  kill(-group);
  const end = performance.now() + PATIENCE;
  for (;;) {
    const { found, isCertain } = process.platform === "linux" ? findMarked(mark) : NOBODY;
    if (isCertain && found.length === 0) return;
    for (const pid of found) kill(pid);
    if (performance.now() > end) return;
    await wait(PAUSE);
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It is gone already.
  }
}
