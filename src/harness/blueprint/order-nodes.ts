import { nearestName } from "../../util/nearest.js";
import type { Fault } from "../schema.js";

/** What the order of nodes depends on. */
interface Ordered {
  readonly id: string;
  readonly needs: readonly string[];
}

/** Puts nodes into an order in which each comes after what it needs, and otherwise as they are written. */
export function orderNodes<T extends Ordered>(nodes: readonly T[], report: (fault: Fault) => void): T[] {
  const first = new Map<string, number>();
  for (const [at, { id }] of nodes.entries()) {
    const before = first.get(id);
    if (before === undefined) first.set(id, at);
    else report({ place: ["nodes", at, "id"], message: `the id ${id} is that of nodes[${before}] already` });
  }
  for (const [at, { needs }] of nodes.entries()) {
    for (const [index, need] of needs.entries()) {
      if (first.has(need)) continue;
      const close = nearestName(need, first.keys());
      const hint = close === undefined ? "" : `; did you mean ${close}?`;
      report({ place: ["nodes", at, "needs", index], message: `there is no node ${need}${hint}` });
    }
  }
  const ordered: T[] = [];
  const done = new Set<string>();
  let rest = [...nodes];
  while (rest.length > 0) {
    const next = rest.find(({ needs }) => needs.every((need) => done.has(need) || !first.has(need)));
    if (next === undefined) {
      const cycle = findCycle(rest);
      const at = first.get(cycle[0] ?? "") ?? 0;
      report({ place: ["nodes", at, "needs"], message: `these nodes need each other: ${cycle.join(" → ")}` });
      return [...ordered, ...rest];
    }
    ordered.push(next);
    done.add(next.id);
    rest = rest.filter((node) => node !== next);
  }
  return ordered;
}

/** Follows the first open need of each until one comes again. */
function findCycle(nodes: readonly Ordered[]): string[] {
  const open = new Map(nodes.map((node) => [node.id, node]));
  const path: string[] = [];
  let at: string | undefined = nodes[0]?.id;
  while (at !== undefined && !path.includes(at)) {
    path.push(at);
    at = open.get(at)?.needs.find((need) => open.has(need));
  }
  return at === undefined ? path : [...path.slice(path.indexOf(at)), at];
}
