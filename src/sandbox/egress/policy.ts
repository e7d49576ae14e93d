import type { NetworkRules } from "../../../contracts/types.js";
import { hostValue } from "./addresses.js";
import { hostInUrl, normalizeHost, normalizeIPv6 } from "./host-name.js";
import { checkRequest, type RequestFacts } from "./rules/check-request.js";
import { commonHost } from "./rules/compare.js";
import { refuseContradictions } from "./rules/contradictions.js";
import { entryText } from "./rules/entry-text.js";
import {
  DEFAULT_PORTS,
  HOST_LOOPBACK,
  type NetworkEntry,
  parseEntry,
  type Reading,
  type Rule,
} from "./rules/network-entry.js";

export { type RequestFacts, ruleFor } from "./rules/check-request.js";
export { firstBeyond } from "./rules/compare.js";
export { DEFAULT_PORTS, type NetworkEntry } from "./rules/network-entry.js";

/** Which addresses of a host may be connected to. */
export interface Reach {
  /** `loopback`: the host's own. */
  readonly scopes: readonly ("public" | "private" | "loopback")[];
  /** Whether a rule denies an address, whatever its name. */
  isDenied(address: string): boolean;
}

/** What may be reached. */
export interface EgressPolicy {
  /** Whether a program may ask for a host, in any spelling, at this port. Never for text that names no host. */
  isAllowed(host: string, port: number): boolean;
  /** The entry of `deny` that denies a host at this port, for messages; undefined if none does. */
  deniedBy(host: string, port: number): string | undefined;
  /** The entry that allows it, as it was written. Absent: not known. */
  ruleFor?(host: string, port: number): string | undefined;
  /** Whether an entry for this host and port says `plain`: a tunnel may carry something other than TLS. */
  isPlain(host: string, port: number): boolean;
  /** The ports at which a host may be asked for; none if it may not. */
  portsOf(host: string): readonly number[];
  /** Which of its addresses may be connected to. */
  reachOf(host: string, port: number): Reach;
  /** The names with rules about single requests, with `*.` where they stand for all below. Their TLS ends at the proxy. */
  readonly inspected: readonly string[];
  /** Whether a rule for this host and port is about single requests. */
  isInspected(host: string, port: number): boolean;
  /** Throws a `Refusal` for a request that the rules for its host and port exclude. */
  checkRequest(host: string, port: number, request: RequestFacts): void;
}

/** Parses a list of names and rules. An empty list allows nothing. */
export function parseAllow(list: readonly NetworkEntry[], name = "network.allow"): EgressPolicy {
  return makePolicy(
    list.map((entry, index) => parseEntry(entry, `${name}[${index}]`, { verb: "allow" })),
    [],
  );
}

/** Parses rules, and refuses those that contradict each other. */
export function parseRules(
  { allow, deny = [] }: Pick<NetworkRules, "allow" | "deny">,
  { name = "network", isHostLoopbackKnown }: { name?: string } & Pick<Reading, "isHostLoopbackKnown"> = {},
): EgressPolicy {
  const allowed = allow.map((entry, index) =>
    parseEntry(entry, `${name}.allow[${index}]`, { verb: "allow", isHostLoopbackKnown }),
  );
  const denied = deny.map((entry, index) =>
    parseEntry(entry, `${name}.deny[${index}]`, { verb: "deny", isHostLoopbackKnown }),
  );
  refuseContradictions(allowed, denied);
  return makePolicy(allowed, denied);
}

/** The same rules and more names, without a second look at whether they go together. */
export function widened(
  { allow, deny = [] }: Pick<NetworkRules, "allow" | "deny">,
  more: readonly NetworkEntry[],
): EgressPolicy {
  const own = { verb: "allow", isHostLoopbackKnown: true } as const;
  return makePolicy(
    [
      ...allow.map((entry, index) => parseEntry(entry, `network.allow[${index}]`, own)),
      ...more.map((entry, index) => parseEntry(entry, `network.allow[${allow.length + index}]`, { verb: "allow" })),
    ],
    deny.map((entry, index) => parseEntry(entry, `network.deny[${index}]`, { ...own, verb: "deny" })),
  );
}

function makePolicy(allow: readonly Rule[], deny: readonly Rule[]): EgressPolicy {
  const matching = (rules: readonly Rule[], host: string, port: number): Rule[] =>
    rules.filter((rule) => matchesHost(rule, host) && (rule.ports?.includes(port) ?? true));
  const allowed = (host: string, port: number): Rule[] =>
    matching(deny, host, port).some((rule) => rule.requests === undefined) ? [] : matching(allow, host, port);
  const isAboutRequests = (rules: readonly Rule[]): boolean => rules.some(({ requests }) => requests !== undefined);
  return {
    isAllowed: (host, port) => allowed(host, port).length > 0,
    ruleFor: (host, port) => {
      const [rule] = allowed(host, port);
      return rule && entryText(rule.entry);
    },
    deniedBy: (host, port) => {
      const rule = matching(deny, host, port).find(({ requests }) => requests === undefined);
      return rule && `${rule.name} (${entryText(rule.entry)})`;
    },
    isPlain: (host, port) => allowed(host, port).some((rule) => rule.isPlain),
    portsOf: (host) => {
      const named = allow.filter((rule) => matchesHost(rule, host)).flatMap(({ ports }) => ports ?? []);
      return [...new Set(named)].filter((port) => allowed(host, port).length > 0);
    },
    reachOf: (host, port) => ({
      scopes: scopesOf(allowed(host, port)),
      isDenied: (address) =>
        deny.some(
          ({ host: denied, ports, requests }) =>
            requests === undefined &&
            (ports?.includes(port) ?? true) &&
            hostValue(denied) !== undefined &&
            hostValue(denied) === hostValue(address),
        ),
    }),
    inspected: [...new Set(inspectedHosts(allow, deny))],
    isInspected: (host, port) => isAboutRequests(allowed(host, port)) || isAboutRequests(matching(deny, host, port)),
    checkRequest: (host, port, request) =>
      checkRequest(host, port, request, { allow: allowed(host, port), deny: matching(deny, host, port) }),
  };
}

/** A host that somebody allowed once has no rule, and is reached as one with a name alone. */
function scopesOf(rules: readonly Rule[]): Reach["scopes"] {
  if (rules.length === 0) return ["public"];
  return rules.map(({ isPrivate, host }) => (host === HOST_LOOPBACK ? "loopback" : isPrivate ? "private" : "public"));
}

function inspectedHosts(allow: readonly Rule[], deny: readonly Rule[]): string[] {
  const denying = deny.filter(({ requests }) => requests !== undefined);
  return [
    ...allow
      .filter(({ requests }) => requests !== undefined)
      .map(({ host, isWildcard }) => (isWildcard ? `*${host}` : host)),
    ...allow.flatMap((rule) => denying.flatMap((each) => commonHost(rule, each) ?? [])),
  ];
}

function matchesHost({ host, isWildcard }: Rule, asked: string): boolean {
  const wanted = normalizeHost(asked) ?? normalizeIPv6(asked);
  if (wanted === undefined) return false;
  return isWildcard ? wanted.endsWith(host) : wanted === host;
}

/** The entry that would allow a host and port; undefined if none could. */
export function entryFor(host: string, port: number): string | undefined {
  const entry = DEFAULT_PORTS.includes(port) ? hostInUrl(host) : `${hostInUrl(host)}:${port}`;
  return canBe(entry) ? entry : undefined;
}

/** The rule that would allow a host of a private network; undefined if none could. */
export function privateRuleFor(host: string, port: number): NetworkEntry | undefined {
  const rule = { host, private: true, ...(!DEFAULT_PORTS.includes(port) && { port }) };
  return canBe(rule) ? rule : undefined;
}

function canBe(entry: NetworkEntry): boolean {
  try {
    parseAllow([entry]);
    return true;
  } catch {
    return false;
  }
}
