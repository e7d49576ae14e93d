import { readdirSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { readQuietly } from "./token-watch.js";

/** Every process below another one. A process that has ended but was never waited for is one. */
export function descendants(of: number): number[] {
  const all = readdirSync("/proc").flatMap((name) => (/^\d+$/.test(name) ? (familyOf(Number(name)) ?? []) : []));
  const below = (parent: number): Family[] =>
    all.filter((each) => each.parent === parent).flatMap((each) => [each, ...below(each.pid)]);
  // On a busy machine an id is another process's before all are read: what counts is still the same child of the same parent.
  const isStill = ({ pid, parent, started }: Family): boolean => {
    const now = familyOf(pid);
    return now !== undefined && now.started === started && now.parent === parent;
  };
  return below(of)
    .filter(isStill)
    .map(({ pid }) => pid);
}

/** The processes that the first thread of another one has started; none when it is gone. */
export function childrenOf(pid: number): number[] {
  return readQuietly(`/proc/${pid}/task/${pid}/children`).split(" ").filter(Boolean).map(Number);
}

/**
 * What is below this process and was not there before, once nothing of it is on its way out: under load a process that was
 * told to end, and is waited for by nobody, takes its time. Gives what is left after half a minute.
 */
export async function stillBelow(before: ReadonlySet<number> = new Set()): Promise<number[]> {
  const look = (): number[] => descendants(process.pid).filter((pid) => !before.has(pid));
  let found = look();
  for (const end = performance.now() + 30_000; found.length > 0 && performance.now() < end; found = look()) {
    await delay(20);
  }
  return found;
}

interface Family {
  pid: number;
  parent: number;
  /** In ticks since the machine started. */
  started: string | undefined;
}

/** Nothing when it has ended. */
function familyOf(pid: number): Family | undefined {
  const stat = readQuietly(`/proc/${pid}/stat`);
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields[1] === undefined ? undefined : { pid, parent: Number(fields[1]), started: fields[19] };
}
