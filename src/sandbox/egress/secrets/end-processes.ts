import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";

/** Milliseconds. */
const PATIENCE = 1_500;
const PAUSE = 20;
/** Fields of `/proc/<pid>/stat` behind the name: the state, the flags, and the time of the start. */
const [STATE, FLAGS, START] = [0, 6, 19] as const;
const KERNEL_THREAD = 0x0020_0000;

/**
 * Kills a process group and, on Linux, everything that has a text in its environment, in whatever session it is by now. Goes on until nothing is left,
 * for one and a half seconds at most.
 */
export async function endProcesses(group: number | undefined, mark: string): Promise<void> {
  if (group === undefined) return;
  kill(-group);
  const end = performance.now() + PATIENCE;
  for (;;) {
    const { found, isCertain } = processesWith(mark);
    if (isCertain && found.length === 0) return;
    for (const pid of found) kill(pid);
    if (performance.now() > end) return;
    await wait(PAUSE);
  }
}

/** `isCertain`: every process could be looked at. One that is being replaced by another program has no environment for a moment. */
function processesWith(mark: string): { found: number[]; isCertain: boolean } {
  const since = Number(statOf("self")?.[START] ?? 0);
  const found: number[] = [];
  let isCertain = true;
  for (const pid of names("/proc").filter((name) => /^\d+$/.test(name))) {
    const environment = read(`/proc/${pid}/environ`);
    if (environment?.includes(mark)) found.push(Number(pid));
    else if (environment === "" && mayBeReplaced(statOf(pid), since)) isCertain = false;
  }
  return { found, isCertain };
}

function mayBeReplaced(stat: readonly string[] | undefined, since: number): boolean {
  if (stat === undefined || /[ZX]/.test(stat[STATE] ?? "")) return false;
  return Number(stat[START]) >= since && (Number(stat[FLAGS]) & KERNEL_THREAD) === 0;
}

function statOf(pid: string): string[] | undefined {
  return read(`/proc/${pid}/stat`)
    ?.replace(/^.*\) /s, "")
    .split(" ");
}

function names(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

/** Undefined for a process that is gone, or another user's. */
function read(path: string): string | undefined {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return undefined;
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It is gone already.
  }
}
