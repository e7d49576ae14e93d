import type { NetworkRules } from "../../../../contracts/types.js";
import { type NetworkEntry, parseEntry, type Rule } from "./network-entry.js";
import { coversRequests } from "./request-rule.js";

type Lists = Pick<NetworkRules, "allow" | "deny">;

/** The first entry of `allow` that other rules do not allow in full; undefined if they allow all of them. */
export function firstBeyond(asked: Lists, most: Lists): NetworkEntry | undefined {
  const bounds = parseAll(most);
  const { allow, deny } = parseAll(asked);
  return allow.find((rule) => !isWithin(rule, bounds.allow) || bounds.deny.some((bound) => escapes(rule, bound, deny)))
    ?.entry;
}

function parseAll({ allow, deny = [] }: Lists): { allow: Rule[]; deny: Rule[] } {
  return {
    allow: allow.map((entry, at) =>
      parseEntry(entry, `network.allow[${at}]`, { verb: "allow", isHostLoopbackKnown: true }),
    ),
    deny: deny.map((entry, at) =>
      parseEntry(entry, `network.deny[${at}]`, { verb: "deny", isHostLoopbackKnown: true }),
    ),
  };
}

/** Each port of a rule must be within a single bound: that several together allow it is too much to ask of a reader. */
function isWithin(rule: Rule, bounds: readonly Rule[]): boolean {
  return (
    rule.ports?.every((port) => bounds.some((bound) => covers(bound, { ...rule, ports: [port] }, "allow"))) ?? false
  );
}

/** Whether a rule may allow what a bound denies, since nothing denies it here. */
function escapes(rule: Rule, bound: Rule, deny: readonly Rule[]): boolean {
  return overlaps(rule, bound) && !deny.some((own) => covers(own, bound, "deny"));
}

/** Whether a rule is certainly about all that another is about. */
export function covers(bound: Rule, asked: Rule, verb: "allow" | "deny"): boolean {
  if (!coversHost(bound, asked) || !coversPorts(bound, asked)) return false;
  if (verb === "allow") {
    if (asked.isPlain && !bound.isPlain) return false;
    if (asked.isPrivate !== bound.isPrivate) return false;
  }
  return coversRequests(bound.requests, asked.requests, verb);
}

/** Whether a host and a port exist that both rules are about. */
export function overlaps(one: Rule, other: Rule): boolean {
  return (coversHost(one, other) || coversHost(other, one)) && sharesPort(one, other);
}

/** The host that both rules are about, if there is one; with `*.` where it stands for all below. */
export function commonHost(one: Rule, other: Rule): string | undefined {
  if (!overlaps(one, other)) return undefined;
  const { host, isWildcard } = coversHost(one, other) ? other : one;
  return isWildcard ? `*${host}` : host;
}

function coversHost(bound: Rule, asked: Rule): boolean {
  if (bound.isWildcard) return asked.host.endsWith(bound.host);
  return !asked.isWildcard && asked.host === bound.host;
}

function coversPorts({ ports: bound }: Rule, { ports: asked }: Rule): boolean {
  return bound === undefined || (asked?.every((port) => bound.includes(port)) ?? false);
}

function sharesPort({ ports: one }: Rule, { ports: other }: Rule): boolean {
  return one === undefined || other === undefined || one.some((port) => other.includes(port));
}
