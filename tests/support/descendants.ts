import { readdirSync, readFileSync } from "node:fs";

/** Every process below another one. A process that has ended but was never waited for is one. */
export function descendants(of: number): number[] {
  const below = (parent: number, all: readonly Family[]): number[] =>
    all.filter((each) => each.parent === parent).flatMap(({ pid }) => [pid, ...below(pid, all)]);
  return below(of, families());
}

interface Family {
  pid: number;
  parent: number;
}

function families(): Family[] {
  const found: Family[] = [];
  for (const name of readdirSync("/proc").filter((entry) => /^\d+$/.test(entry))) {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8");
      const [, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      found.push({ pid: Number(name), parent: Number(parent) });
    } catch {
      // It ended while the list was read.
    }
  }
  return found;
}
