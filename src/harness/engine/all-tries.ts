import { added, noTokens } from "../agents.js";
import type { AgentReport } from "../types.js";

/** What an agent did in all tries of its node: as the last one says, with the turns, tokens and known cost of all. */
export function ofAllTries(tries: readonly AgentReport[]): AgentReport | undefined {
  const last = tries.at(-1);
  if (last === undefined || tries.length === 1) return last;
  const usages = tries.flatMap(({ usage }) => usage ?? []);
  const turns = tries.flatMap((each) => each.turns ?? []);
  const costs = tries.flatMap(({ costUsd }) => costUsd ?? []);
  return {
    ...last,
    costUsd: costs.length === 0 ? null : costs.reduce((sum, cost) => sum + cost, 0),
    ...(usages.length > 0 && { usage: usages.reduce(added, noTokens()) }),
    ...(turns.length > 0 && { turns: turns.reduce((sum, count) => sum + count, 0) }),
  };
}
