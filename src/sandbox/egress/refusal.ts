import { hostInUrl } from "./host-name.js";

/** Why a program did not get a host. */
export type BlockReason =
  | "not_allowed"
  | "denied"
  | "malformed_host"
  | "host_mismatch"
  | "name_mismatch"
  | "no_name"
  | "unnamed"
  | "not_public"
  | "not_private"
  | "upstream_refused"
  | "request_not_allowed"
  | "request_unclear"
  | "not_trusted"
  | "no_request"
  | "not_http";

/** A host that a program did not get, as the program wrote it, but for a user and a password before it: 255 printable characters at most. */
export interface BlockedHost {
  host: string;
  /** Undefined when it could not be read. */
  port: number | undefined;
  reason: BlockReason;
}

/** The reason to answer a request with an error status and nothing else. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly status: number;
  readonly blocked: BlockedHost | undefined;
  /** The entry of `network.allow` that would let it pass; undefined if none would. */
  readonly entry: string | undefined;

  constructor(status: number, message: string, blocked?: BlockedHost, entry?: string) {
    super(message);
    this.status = status;
    this.blocked = blocked;
    this.entry = entry;
  }
}

/** Describes a blocked host. Its name comes from the program and may be anything. */
export function blockedHost(host: string, port: number | undefined, reason: BlockReason): BlockedHost {
  const shown = host.replace(/^.*@/s, "***@");
  return { host: shown.slice(0, 255).replace(/[^\x21-\x7e]/g, "?"), port, reason };
}

const MAX_REPORTS = 500;

/** Reports each host, port and reason once, and 500 of them at most: the sandbox decides how many there are. */
export function reportOnce(onBlocked: (blocked: BlockedHost) => void): (blocked: BlockedHost) => void {
  const seen = new Set<string>();
  return (blocked) => {
    const key = `${blocked.reason} ${blocked.host} ${blocked.port}`;
    if (seen.has(key) || seen.size >= MAX_REPORTS) return;
    seen.add(key);
    try {
      onBlocked(blocked);
    } catch {
      // A listener must not disturb the proxy.
    }
  };
}

const WHY: Readonly<Record<BlockReason, string>> = {
  not_allowed: "network.allow does not have it",
  denied: "network.deny has it",
  malformed_host: "it names no host",
  host_mismatch: "the Host header of a request to another host named it",
  name_mismatch: "the TLS hello of a tunnel to another host named it, or could not be read",
  no_name: "its tunnel did not open with a TLS hello that names it",
  unnamed: "the TLS hello of a program without a proxy does not name its host",
  not_public: "its address is not public",
  not_private: "its address is not private, as its rule says",
  upstream_refused: "the upstream proxy did not accept the user or the password",
  request_not_allowed: "its rules do not allow that request",
  request_unclear:
    "its rules need to know what a request means, and servers could understand that one in different ways",
  not_trusted: "the program does not accept the sandbox's own certificate, which its rules or secrets need",
  no_request:
    "the program broke off its TLS connection without a request, as those do that accept no other certificate than the host's own; its rules or secrets need the sandbox's",
  not_http: "the program speaks neither HTTP/1.1 nor HTTP/2, which its rules or secrets need",
};

/** A sentence about what was blocked and why, with the entry that would allow it if that is not a new name. */
export function explainBlocked({ host, port, reason }: BlockedHost): string {
  const where = port === undefined ? host : `${hostInUrl(host)}:${port}`;
  const remedy = reason === "no_name" ? `; to allow that: "plain://${where}"` : "";
  return `blocked ${where}: ${WHY[reason]}${remedy}`;
}

/** Here, because node:http would be loaded with the rules of every sandbox. */
const PHRASES: Readonly<Record<number, string>> = {
  400: "Bad Request",
  403: "Forbidden",
  408: "Request Timeout",
  413: "Payload Too Large",
  431: "Request Header Fields Too Large",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
};

/** The text of the answer to a refused request, with what to type where something would allow it. */
export function explainRefusal({ message, entry }: Refusal): string {
  const more =
    entry === undefined
      ? ""
      : `\nto allow it: network: { allow: ["${entry}"] } in code, --network allow=${entry} in a shell`;
  return `glovebox: ${message}${more}\n`;
}

/** The headers of the answer to a refused request. */
export function refusalHeaders({ blocked }: Refusal): (readonly [name: string, value: string])[] {
  const why = blocked && `glovebox; error=http_request_denied; details="${blocked.reason}"`;
  return [
    ...(why === undefined ? [] : [["Proxy-Status", why] as const]),
    ["Content-Type", "text/plain; charset=utf-8"],
  ];
}

/** Characters of a reason in a status line. */
const MOST_WORDS = 400;

/** The complete answer to a refused request. Of the answer to CONNECT most programs show the status line at best, so it has the remedy or the reason. */
export function toAnswer(refusal: Refusal): Buffer {
  const { status, entry, message } = refusal;
  const why = entry === undefined ? `: ${message.replaceAll("\n", "; ")}` : `; to allow it: --network allow=${entry}`;
  const body = explainRefusal(refusal);
  const head = [
    `HTTP/1.1 ${status} ${PHRASES[status] ?? "Error"} by glovebox${why.slice(0, MOST_WORDS).replace(/[^\x20-\x7e]/g, "?")}`,
    ...refusalHeaders(refusal).map(([name, value]) => `${name}: ${value}`),
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Connection: close",
  ];
  return Buffer.from(`${head.join("\r\n")}\r\n\r\n${body}`);
}
