import { SandboxError } from "../../../../contracts/errors.js";
import { covers, overlaps } from "./compare.js";
import { entryText } from "./entry-text.js";
import type { Rule } from "./network-entry.js";

/** Throws `invalid_argument` for rules that cannot mean what they say together. */
export function refuseContradictions(allow: readonly Rule[], deny: readonly Rule[]): void {
  for (const rule of allow) {
    refuseUseless(rule, allow);
    const over = deny.find((each) => coversAll(each, rule));
    if (over !== undefined) throw contradiction(rule, over, "denies all of it", "remove one of the two");
    const unchecked = rule.isPlain && deny.find((each) => each.requests !== undefined && overlaps(each, rule));
    if (unchecked) {
      throw contradiction(rule, unchecked, "is about requests", "what a plain connection carries can't be checked");
    }
  }
}

/** Of two rules for a host, one about some requests and one about all, the first would mean nothing. */
function refuseUseless(rule: Rule, allow: readonly Rule[]): void {
  if (rule.requests === undefined) return;
  const over = allow.find((each) => each.requests === undefined && overlaps(each, rule));
  if (over === undefined) return;
  throw contradiction(
    rule,
    over,
    "allows every request there",
    "remove one of the two, or use deny for what must not pass",
  );
}

function coversAll(deny: Rule, allow: Rule): boolean {
  // To deny pushing, or fetching, leaves the other one.
  if (deny.requests?.git !== undefined && allow.requests?.git === "push") return false;
  return covers(deny, allow, "deny");
}

function contradiction(rule: Rule, other: Rule, why: string, hint: string): SandboxError {
  return new SandboxError(
    "invalid_argument",
    `Invalid ${rule.name} (${entryText(rule.entry)}): ${other.name} (${entryText(other.entry)}) ${why}`,
    { hint },
  );
}
