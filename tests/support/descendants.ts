import { readdirSync } from "node:fs";
import { readQuietly } from "./token-watch.js";

/** Every process below another one. A process that has ended but was never waited for is one. */
export function descendants(of: number): number[] {
  const below = (parent: number, all: readonly Family[]): number[] =>
    all.filter((each) => each.parent === parent).flatMap(({ pid }) => [pid, ...below(pid, all)]);
  return below(of, families());
}

/** The processes that the first thread of another one has started; none when it is gone. */
export function childrenOf(pid: number): number[] {
  return readQuietly(`/proc/${pid}/task/${pid}/children`).split(" ").filter(Boolean).map(Number);
}

interface Family {
  pid: number;
  parent: number;
}

function families(): Family[] {
  const found: Family[] = [];
  for (const name of readdirSync("/proc").filter((entry) => /^\d+$/.test(entry))) {
    const stat = readQuietly(`/proc/${name}/stat`);
    const [, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    // Nothing when it ended while the list was read.
    if (parent !== undefined) found.push({ pid: Number(name), parent: Number(parent) });
  }
  return found;
}
