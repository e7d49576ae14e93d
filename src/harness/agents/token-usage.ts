import type { TokenUsage } from "../types.js";

const NAMES = ["input", "output", "cacheRead", "cacheWrite"] as const;

/** No tokens. */
export function noTokens(): TokenUsage {
  return { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
}

/** What was used beyond an earlier count; undefined when the count does not go on from it. */
export function beyond(total: TokenUsage, before: TokenUsage): TokenUsage | undefined {
  if (NAMES.some((name) => total[name] < before[name])) return undefined;
  return combine(total, before, (a, b) => a - b);
}

/** The sum of two counts. */
export function added(one: TokenUsage, other: TokenUsage): TokenUsage {
  return combine(one, other, (a, b) => a + b);
}

function combine(one: TokenUsage, other: TokenUsage, by: (a: number, b: number) => number): TokenUsage {
  return Object.fromEntries(NAMES.map((name) => [name, by(one[name], other[name])])) as unknown as TokenUsage;
}
