import type { AgentFailure } from "../types.js";

const SIGNS: readonly (readonly [AgentFailure, RegExp])[] = [
  ["quota", /credit balance|insufficient[_ ]quota|usage limit|spend(?:ing)? limit|billing/i],
  [
    "unauthenticated",
    /not logged in|please run \/login|invalid api key|authentication|unauthori[sz]ed|\b401\b|api key/i,
  ],
  ["rate_limit", /rate.?limit|too many requests|overloaded|\b429\b|\b529\b/i],
  [
    "network",
    /reconnecting|connection|network|econn|enotfound|eai_again|etimedout|fetch failed|socket|stream disconnected|\b50[234]\b/i,
  ],
];

/** Finds from an agent's own words whose fault a failure was. */
export function classifyFailure(text: string): AgentFailure {
  return SIGNS.find(([, sign]) => sign.test(text))?.[0] ?? "agent_error";
}
