import type { AgentFailure } from "../types.js";
import { asRecord, asText, type Untrusted } from "./json-line.js";

/** What an agent's program reports of a failure. */
export interface FailureFields {
  /** Of the service's answer. */
  readonly status?: number | undefined;
  /** The service's, or the program's, own word for it: `overloaded_error`, `invalid_api_key`. */
  readonly kind?: string | undefined;
}

const KINDS: Readonly<Record<string, AgentFailure>> = {
  ...kinds(
    "quota",
    "billing_error insufficient_quota billing_hard_limit_reached usage_limit_reached usage_not_included",
  ),
  ...kinds("unauthenticated", "authentication_failed authentication_error oauth_org_not_allowed invalid_api_key"),
  ...kinds("unauthenticated", "permission_error UNAUTHENTICATED PERMISSION_DENIED"),
  ...kinds(
    "rate_limit",
    "rate_limit rate_limit_error rate_limit_exceeded overloaded overloaded_error RESOURCE_EXHAUSTED",
  ),
  ...kinds("rate_limit", "server_overloaded slow_down"),
  ...kinds(
    "network",
    "server_error api_error timeout_error internal_server_error INTERNAL UNAVAILABLE DEADLINE_EXCEEDED",
  ),
};

/** Finds whose fault a failure was. */
export function failureOf({ status, kind = "" }: FailureFields): AgentFailure {
  const named = Object.hasOwn(KINDS, kind) ? KINDS[kind] : undefined;
  // An account without money has the status of one that asks too often.
  if (named === "quota") return "quota";
  return failureOfStatus(status) ?? named ?? "agent_error";
}

/** Whose fault a failed request to a model was, by its HTTP status; undefined when the status doesn't say. */
export function failureOfStatus(status: number | undefined): AgentFailure | undefined {
  if (status === undefined) return undefined;
  if (status === 401 || status === 403) return "unauthenticated";
  if (status === 402) return "quota";
  if (status === 429 || status === 529) return "rate_limit";
  if (status === 408 || (status >= 500 && status < 600)) return "network";
  return undefined;
}

/** Where the programs write the status, at the start of an error and anywhere. */
const FIRST = /^(\d{3})\b/;
const STATUS = [/\bunexpected status (\d{3})\b/, /\blast status: (\d{3})\b/, /\bHTTP error: (\d{3})\b/];

/** The programs' own words for a service that they could not reach, or that broke off. */
const UNREACHED =
  /^terminated(?:$|: )|^fetch failed|^Connection error|^Request timed out|^socket hang up|stream disconnected before completion|stream ended without|^Reconnecting\.\.\.|currently experiencing high demand|\b(?:ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EPIPE|UND_ERR_[A-Z_]+)\b/;

/** Finds whose fault a failure was from the error that a program wrote: never from what its model said. */
export function failureOfError(error: string): AgentFailure {
  return classify(error, [FIRST, ...STATUS]);
}

/** The same, from a line of stderr: one that starts with a number may count anything. */
export function failureOfStderr(line: string): AgentFailure {
  return classify(line, STATUS);
}

function classify(error: string, places: readonly RegExp[]): AgentFailure {
  const status = places.map((place) => place.exec(error)?.[1]).find((found) => found !== undefined);
  const known = failureOf({ status: status === undefined ? undefined : Number(status), kind: kindIn(error) });
  return known === "agent_error" && UNREACHED.test(error) ? "network" : known;
}

/** The kind in the service's answer, where the program passes it on. */
function kindIn(error: string): string | undefined {
  const start = error.indexOf("{");
  if (start < 0) return undefined;
  try {
    const body = asRecord(JSON.parse(error.slice(start, error.lastIndexOf("}") + 1)));
    const inner: Untrusted = asRecord(body?.["error"]) ?? body ?? {};
    const words = [inner["code"], inner["type"], inner["status"]].map(asText);
    return words.find((word) => word !== undefined && Object.hasOwn(KINDS, word));
  } catch {
    return undefined; // no JSON after all
  }
}

function kinds(failure: AgentFailure, words: string): Record<string, AgentFailure> {
  return Object.fromEntries(words.split(" ").map((word) => [word, failure]));
}
