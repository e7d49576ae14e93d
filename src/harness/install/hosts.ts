import type { NetworkPolicy } from "../../../contracts/types.js";
import { parseAllow, parseRules } from "../../sandbox/host.js";

const PORTS: Readonly<Record<string, number>> = { "https:": 443, "http:": 80, "ssh:": 22, "git:": 9418 };

/** A host that an address leads to. */
export interface HostPort {
  readonly host: string;
  readonly port: number;
  readonly isPlain: boolean;
}

/** The host of an address such as `https://…` or `git+ssh://…`; undefined for what has none. */
export function hostOf(address: string): HostPort | undefined {
  const text = address.replace(/^[a-z]+\+/i, "");
  if (!URL.canParse(text)) return undefined;
  const { protocol, hostname, port } = new URL(text);
  const host = hostname.toLowerCase();
  if (!/^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])$/.test(host)) return undefined;
  const usual = PORTS[protocol] ?? 443;
  return { host, port: port === "" ? usual : Number(port), isPlain: protocol !== "https:" };
}

/** A host as an entry of `network.allow`. */
export function toEntry({ host, port, isPlain }: HostPort): string {
  return `${isPlain ? "plain://" : ""}${host}:${port}`;
}

/** The same for people, and to be typed. */
export function toShortEntry(place: HostPort): string {
  return place.port === 443 && !place.isPlain ? place.host : toEntry(place);
}

/** Whether a network lets a host through already. */
export function isCovered({ host, port, isPlain }: HostPort, network: NetworkPolicy): boolean {
  if (typeof network === "string") return network === "full";
  const rules = parseRules(network, { isHostLoopbackKnown: true });
  return rules.isAllowed(host, port) && (!isPlain || rules.isPlain(host, port));
}

/** Whether a sandbox could be given this host at all. */
export function canBeAllowed(place: HostPort): boolean {
  try {
    parseAllow([toEntry(place)]);
    return true;
  } catch {
    return false;
  }
}
