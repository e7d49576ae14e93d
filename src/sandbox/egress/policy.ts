import { isIP } from "node:net";
import { domainToASCII } from "node:url";
import { SandboxError } from "../../../contracts/errors.js";
import { describe } from "../../util/schema.js";
import { isPublicAddress } from "./addresses.js";
import { normalizeHost, normalizeIPv6, parseAuthority } from "./host-name.js";

/** What may be reached. */
export interface EgressPolicy {
  /** Whether a program may ask for a host, in any spelling, at this port. Never for text that names no host. */
  isAllowed(host: string, port: number): boolean;
  /** Whether an entry for this host and port says `plain`: a tunnel may carry something other than TLS. */
  isPlain(host: string, port: number): boolean;
}

/** The ports of an entry that names none. */
const DEFAULT_PORTS: readonly number[] = [80, 443];

/** The prefix of an entry whose tunnels may carry something other than TLS. */
const PLAIN = "plain://";

interface Rule {
  /** For a wildcard: the rest of the name, with the dot before it. */
  host: string;
  isWildcard: boolean;
  ports: readonly number[];
  isPlain: boolean;
}

/**
 * Parses a list of names: `host`, `host:port`, `*.host` for everything below `host` but not itself, or a public address; with `plain://` before
 * a host and its port, tunnels there need not carry TLS. An entry that could never match, or would match too much, is `invalid_argument`. An
 * empty list allows nothing.
 */
export function parseAllow(list: readonly string[], name = "network.allow"): EgressPolicy {
  const rules = list.map((entry, index) => parseEntry(entry, `${name}[${index}]`));
  const rulesFor = (host: string, port: number): Rule[] => {
    const wanted = normalizeHost(host) ?? normalizeIPv6(host);
    if (wanted === undefined) return [];
    return rules.filter((rule) => matches(rule, wanted) && rule.ports.includes(port));
  };
  return {
    isAllowed: (host, port) => rulesFor(host, port).length > 0,
    isPlain: (host, port) => rulesFor(host, port).some((rule) => rule.isPlain),
  };
}

function matches({ host, isWildcard }: Rule, wanted: string): boolean {
  return isWildcard ? wanted.endsWith(host) : wanted === host;
}

function parseEntry(entry: unknown, name: string): Rule {
  const refuse = (expected: string, hint?: string): SandboxError =>
    new SandboxError("invalid_argument", `Invalid ${name}: expected ${expected}, got ${describe(entry)}`, { hint });
  if (typeof entry !== "string" || entry === "") throw refuse("the name of a host");
  const isPlain = entry.startsWith(PLAIN);
  const text = isPlain ? entry.slice(PLAIN.length) : entry;
  const url = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(text);
  if (url) throw refuse("a name without a scheme", url[1] ? `write ${describe(url[1])}` : undefined);
  if (/[/?#]/.test(text)) throw refuse("a name without a path", "whole hosts are allowed, not parts of them");
  if (/^\*(?::\d+)?$/.test(text)) throw refuse("a name", 'network: "full" allows every host');

  const isWildcard = text.startsWith("*.");
  const { host, port } = parseHost(isWildcard ? text.slice(2) : text) ?? {};
  if (host === undefined) throw refuse('a name such as "example.com", "*.example.com" or "example.com:8080"');
  if (isPlain && port === undefined) throw refuse('a port, as in "plain://example.com:22"');
  const ports = port === undefined ? DEFAULT_PORTS : [port];
  if (isIP(host) > 0) {
    if (isWildcard) throw refuse("an address without a wildcard");
    if (!isPublicAddress(host)) throw refuse("a public address", "private and local addresses are never reached");
    return { host, isWildcard, ports, isPlain };
  }
  if (!host.includes(".")) {
    if (isWildcard) throw refuse("a wildcard below a registered name", `"*.example.${host}" would do`);
    throw refuse("a name with a dot in it", "names of the local network are never reached");
  }
  return { host: isWildcard ? `.${host}` : host, isWildcard, ports, isPlain };
}

function parseHost(text: string): ReturnType<typeof parseAuthority> {
  const address = normalizeIPv6(text);
  if (address !== undefined) return { host: address, port: undefined };
  // Only for names with other letters: the mapping also decodes percent signs and drops characters.
  if (!/[^\0-\x7f]/.test(text)) return parseAuthority(text);
  if (!/^[A-Za-z0-9._:\u0080-\u{10ffff}-]+$/u.test(text)) return undefined;
  const [, name = "", port = ""] = /^([^:]*)(:.*)?$/s.exec(text) ?? [];
  return parseAuthority(domainToASCII(name) + port);
}

/** The first entry of a list that another list does not allow in full; undefined if it allows all of them. */
export function firstBeyond(list: readonly string[], most: readonly string[]): string | undefined {
  const bounds = most.map((entry, index) => parseEntry(entry, `most[${index}]`));
  return list.find((entry, index) => {
    const asked = parseEntry(entry, `network.allow[${index}]`);
    return !asked.ports.every((port) => bounds.some((bound) => covers(bound, asked, port)));
  });
}

function covers(bound: Rule, asked: Rule, port: number): boolean {
  if (!bound.ports.includes(port) || (asked.isPlain && !bound.isPlain)) return false;
  if (bound.isWildcard) return asked.host.endsWith(bound.host);
  return !asked.isWildcard && asked.host === bound.host;
}
