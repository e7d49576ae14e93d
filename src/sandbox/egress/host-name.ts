import { isIPv4, isIPv6 } from "node:net";

const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
const MAX_NAME = 253;
/** What a resolver takes for a number: `1`, `0177`, `0x7f`. A name that ends in one may be an address. */
const NUMBER = /^(?:\d+|0x[0-9a-f]*)$/;

/**
 * Normalizes a host to the form that is compared and resolved: lower case, without the final dot, addresses in their usual text and without
 * brackets. Undefined for anything that is not clearly a host.
 */
export function normalizeHost(text: string): string | undefined {
  if (text.startsWith("[") && text.endsWith("]")) return normalizeIPv6(text.slice(1, -1));
  const name = text.toLowerCase().replace(/\.$/, "");
  const labels = name.split(".");
  if (name.length > MAX_NAME || !labels.every((label) => LABEL.test(label))) return undefined;
  if (NUMBER.test(labels.at(-1) ?? "")) return isIPv4(name) ? name : undefined;
  return name;
}

/** The shortest text of an IPv6 address; undefined for anything else, also with a zone. */
export function normalizeIPv6(text: string): string | undefined {
  if (!isIPv6(text) || text.includes("%")) return undefined;
  return new URL(`http://[${text}]`).hostname.slice(1, -1);
}

/** A host and the port that was written with it. */
export interface HostAndPort {
  host: string;
  port: number | undefined;
}

/** Parses `host`, `host:port` or `[address]:port`; undefined for anything else, also with a user. */
export function parseAuthority(text: string): HostAndPort | undefined {
  const parts = /^(\[[^\]]*\]|[^:[\]]*)(?::([1-9]\d{0,4}))?$/.exec(text);
  const host = normalizeHost(parts?.[1] ?? "");
  const port = parts?.[2] === undefined ? undefined : Number(parts[2]);
  return host === undefined || (port !== undefined && port > 65_535) ? undefined : { host, port };
}

/** Formats a host for a URL. */
export function hostInUrl(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
