import { isIP } from "node:net";
import { normalizeHost } from "../host-name.js";
import { answerTo, CLASS_IN, type DnsQuery, RCODE, readQuery, TYPE } from "./dns-message.js";

/** Seconds. Shorter than a listener stays. */
const TTL = 5;

/** What the resolver of a sandbox answers from. It asks no other resolver, so that no query leaves this machine. */
export interface KnownNames {
  /** Whether a name may be reached at some port. */
  isKnown(host: string): boolean;
  /** The address in the sandbox that leads to it; undefined if no listener can be there now. */
  addressOf(host: string): Promise<number | undefined>;
  /** Learns of a name that was asked for and is not known. */
  onUnknown(host: string): void;
}

/** Answers a query at once: an address for a known name, and for any other that it does not exist. Undefined: no answer. */
export async function resolveName(bytes: Buffer, names: KnownNames): Promise<Buffer | undefined> {
  const query = readQuery(bytes);
  if (query === undefined) return undefined;
  if (query.kind !== "question") {
    return answerTo(bytes, query.kind === "malformed" ? RCODE.malformed : RCODE.notImplemented);
  }
  if (query.class !== CLASS_IN) return answerTo(bytes, RCODE.refused);
  const host = hostOf(query);
  if (host === undefined || !names.isKnown(host)) {
    const isAddressAsked = query.type === TYPE.a || query.type === TYPE.aaaa;
    if (host?.includes(".") === true && isAddressAsked) names.onUnknown(host);
    return answerTo(bytes, RCODE.unknown);
  }
  if (query.type !== TYPE.a && query.type !== TYPE.any) return answerTo(bytes, RCODE.ok);
  const value = await names.addressOf(host);
  return value === undefined ? answerTo(bytes, RCODE.failed) : answerTo(bytes, RCODE.ok, { value, ttl: TTL });
}

function hostOf({ name }: Extract<DnsQuery, { kind: "question" }>): string | undefined {
  const host = name === undefined ? undefined : normalizeHost(name);
  return host === undefined || isIP(host) > 0 ? undefined : host;
}
