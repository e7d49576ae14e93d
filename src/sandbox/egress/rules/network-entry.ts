import { isIP } from "node:net";
import { domainToASCII } from "node:url";
import { SandboxError } from "../../../../contracts/errors.js";
import type { NetworkRule } from "../../../../contracts/types.js";
import { check, describe } from "../../../util/schema.js";
import { isPrivateAddress, isPublicAddress } from "../addresses.js";
import { hostInUrl, normalizeIPv6, parseAuthority } from "../host-name.js";
import { parsePathPattern } from "./path-pattern.js";
import type { RequestRule } from "./request-rule.js";
import { networkRule } from "./rule-schema.js";

/** An entry of a list of rules. */
export type NetworkEntry = string | NetworkRule;

/** An entry that was checked. */
export interface Rule {
  /** Normalized. For a wildcard: the rest of the name, with the dot before it. */
  readonly host: string;
  readonly isWildcard: boolean;
  /** Undefined: every port. */
  readonly ports: readonly number[] | undefined;
  readonly isPlain: boolean;
  readonly isPrivate: boolean;
  /** Undefined: all requests. */
  readonly requests: RequestRule | undefined;
  /** Its place, for messages. */
  readonly name: string;
  readonly entry: NetworkEntry;
}

/** How a list is read. */
export interface Reading {
  readonly verb: "allow" | "deny";
  /** Whether the loopback of the host may be in it. Only where the user wrote it for this sandbox. */
  readonly isHostLoopbackKnown?: boolean | undefined;
}

/** The name inside for the loopback of the host. */
export const HOST_LOOPBACK = "host-loopback";

/** The ports of an entry that names none. */
export const DEFAULT_PORTS: readonly number[] = [80, 443];

/** The prefix of an entry whose tunnels may carry something other than TLS. */
const PLAIN = "plain://";

/**
 * Parses an entry: `host`, `host:port`, `*.host` for everything below `host` but not itself, or an address; with `plain://` before a host and its
 * port, tunnels there need not carry TLS; or a rule. One that could never match, or would match too much, is `invalid_argument`.
 */
export function parseEntry(entry: unknown, name: string, reading: Reading): Rule {
  const refuse: Refuse = (expected, hint) =>
    new SandboxError("invalid_argument", `Invalid ${name}: expected ${expected}, got ${describe(entry)}`, { hint });
  if (typeof entry === "string") return parseName(entry, { name, entry, reading, refuse });
  if (typeof entry !== "object" || entry === null) throw refuse("the name of a host");
  check(entry, networkRule, name);
  return parseRule(entry, { name, entry, reading, refuse });
}

type Refuse = (expected: string, hint?: string) => SandboxError;

interface Source {
  readonly name: string;
  readonly entry: NetworkEntry;
  readonly reading: Reading;
  readonly refuse: Refuse;
}

function parseName(text: string, source: Source): Rule {
  const isPlain = text.startsWith(PLAIN);
  const { host, port } = splitHost(isPlain ? text.slice(PLAIN.length) : text, source.refuse);
  return makeRule(host, port, { isPlain, isPrivate: false, requests: undefined }, source);
}

function parseRule(rule: NetworkRule, source: Source): Rule {
  const { host: text, port, methods, paths, git, private: isPrivate = false, plain: isPlain = false } = rule;
  const { refuse, name, reading } = source;
  const own: Source = { ...source, refuse: (expected, hint) => wrongField(name, "host", text, expected, hint) };
  if (text.startsWith(PLAIN)) throw own.refuse("a name", "plain: true says that");
  const { host, port: written } = splitHost(text, own.refuse);
  if (written !== undefined && port !== undefined) throw own.refuse("a name without a port", "port has one already");
  const isAboutRequests = methods !== undefined || paths !== undefined || git !== undefined;
  if (isPlain && isAboutRequests) {
    throw refuse("no methods, paths or git together with plain", "what a plain connection carries can't be checked");
  }
  if (git !== undefined && methods !== undefined) {
    throw refuse("git or methods, not both", "git decides which methods it needs");
  }
  if (reading.verb === "deny" && (isPlain || isPrivate)) {
    throw refuse("no plain and no private", "deny is about a host however it is reached");
  }
  const patterns = paths?.map((path, index) => {
    const pattern = parsePathPattern(path);
    if ("expected" in pattern) throw wrongField(name, `paths[${index}]`, path, pattern.expected);
    return pattern;
  });
  const requests = isAboutRequests ? { methods, paths: patterns, git } : undefined;
  return makeRule(host, port ?? written, { isPlain, isPrivate, requests }, own);
}

function wrongField(rule: string, field: string, value: unknown, expected: string, hint?: string): SandboxError {
  return new SandboxError(
    "invalid_argument",
    `Invalid ${rule}.${field}: expected ${expected}, got ${describe(value)}`,
    hint === undefined ? {} : { hint },
  );
}

interface Host {
  readonly host: string;
  readonly isWildcard: boolean;
}

function makeRule(
  { host, isWildcard }: Host,
  port: number | undefined,
  more: Pick<Rule, "isPlain" | "isPrivate" | "requests">,
  { name, entry, reading, refuse }: Source,
): Rule {
  const isDenying = reading.verb === "deny";
  const isHost = host === HOST_LOOPBACK && !isWildcard;
  if (more.isPlain && port === undefined) throw refuse('a port, as in "plain://example.com:22"');
  if (isHost) checkHostLoopback(port, more.isPrivate, reading, refuse);
  else if (isIP(host) > 0) checkAddress(host, isWildcard, more.isPrivate, isDenying, refuse);
  else checkName(host, isWildcard, more.isPrivate || isDenying, refuse);
  const usual = isDenying ? undefined : DEFAULT_PORTS;
  return {
    host: isWildcard ? `.${host}` : host,
    isWildcard,
    ports: port === undefined ? usual : [port],
    ...more,
    // Nearly nothing on a host's own loopback speaks TLS.
    isPlain: more.isPlain || (isHost && more.requests === undefined && !isDenying),
    name,
    entry,
  };
}

function checkHostLoopback(
  port: number | undefined,
  isPrivate: boolean,
  { isHostLoopbackKnown = false }: Reading,
  refuse: Refuse,
): void {
  if (!isHostLoopbackKnown) {
    throw refuse(
      "a host other than this one",
      `a port of this host is opened by your own flag: --network allow=${HOST_LOOPBACK}:<port>`,
    );
  }
  if (port === undefined) throw refuse(`a port, as in "${HOST_LOOPBACK}:5432"`);
  if (isPrivate) throw refuse(`${HOST_LOOPBACK} without private`);
}

function checkAddress(host: string, isWildcard: boolean, isPrivate: boolean, isDenying: boolean, refuse: Refuse): void {
  if (isWildcard) throw refuse("an address without a wildcard");
  if (isDenying) return;
  if (isPrivate) {
    if (isPrivateAddress(host)) return;
    throw refuse("a private address", "loopback, link-local and metadata addresses are never reached");
  }
  if (isPublicAddress(host)) return;
  throw refuse(
    "a public address",
    isPrivateAddress(host)
      ? `private and local addresses are never reached without a rule that says so: { host: "${hostInUrl(host)}", private: true }`
      : "private and local addresses are never reached",
  );
}

function checkName(host: string, isWildcard: boolean, isSingleKnown: boolean, refuse: Refuse): void {
  if (isSingleKnown && /(?:^|\.)localhost$/.test(host)) throw refuse("a host other than this one");
  if (host.includes(".") || isSingleKnown) return;
  if (isWildcard) throw refuse("a wildcard below a registered name", `"*.example.${host}" would do`);
  throw refuse("a name with a dot in it", "names of the local network are never reached without private: true");
}

function splitHost(text: string, refuse: Refuse): { host: Host; port: number | undefined } {
  const url = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(text);
  if (url) throw refuse("a name without a scheme", url[1] ? `write ${describe(url[1])}` : undefined);
  if (/[/?#]/.test(text))
    throw refuse(
      "a name without a path",
      'a name allows whole hosts; a rule may have paths: { host: "example.com", paths: ["/v1/**"] }',
    );
  if (/^\*(?::\d+)?$/.test(text)) throw refuse("a name", 'network: "full" allows every host');
  const isWildcard = text.startsWith("*.");
  const { host, port } = parseHost(isWildcard ? text.slice(2) : text) ?? {};
  if (host === undefined) throw refuse('a name such as "example.com", "*.example.com" or "example.com:8080"');
  return { host: { host, isWildcard }, port };
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
