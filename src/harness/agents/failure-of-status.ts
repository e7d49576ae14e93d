import type { AgentFailure } from "../types.js";

/** Whose fault a failed request to a model was, by its HTTP status; undefined when the status doesn't say. */
export function failureOfStatus(status: number | undefined): AgentFailure | undefined {
  if (status === undefined) return undefined;
  if (status === 401 || status === 403) return "unauthenticated";
  if (status === 402) return "quota";
  if (status === 429 || status === 529) return "rate_limit";
  if (status === 408 || (status >= 500 && status < 600)) return "network";
  return undefined;
}
