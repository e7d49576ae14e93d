import { STATUS_CODES } from "node:http";
import { hostInUrl } from "./host-name.js";

/** Why a program did not get a host. */
export type BlockReason =
  | "not_allowed"
  | "malformed_host"
  | "host_mismatch"
  | "name_mismatch"
  | "no_name"
  | "not_public";

/** A host that a program did not get, as the program wrote it: 255 printable characters at most. */
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

  constructor(status: number, message: string, blocked?: BlockedHost) {
    super(message);
    this.status = status;
    this.blocked = blocked;
  }
}

/** Describes a blocked host. Its name comes from the program and may be anything. */
export function blockedHost(host: string, port: number | undefined, reason: BlockReason): BlockedHost {
  return { host: host.slice(0, 255).replace(/[^\x21-\x7e]/g, "?"), port, reason };
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
  malformed_host: "it names no host",
  host_mismatch: "the Host header of a request to another host named it",
  name_mismatch: "the TLS hello of a tunnel to another host named it, or could not be read",
  no_name: "its tunnel did not open with a TLS hello that names it",
  not_public: "its address is not public",
};

/** A sentence about what was blocked and why, with the entry that would allow it if that is not a new name. */
export function explainBlocked({ host, port, reason }: BlockedHost): string {
  const where = port === undefined ? host : `${hostInUrl(host)}:${port}`;
  const remedy = reason === "no_name" ? `; to allow that: "plain://${where}"` : "";
  return `blocked ${where}: ${WHY[reason]}${remedy}`;
}

/** The complete answer to a refused request. */
export function toAnswer({ status, message }: Refusal): Buffer {
  const body = `glovebox: ${message}\n`;
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Error"}`,
    "Content-Type: text/plain; charset=utf-8",
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Connection: close",
  ];
  return Buffer.from(`${head.join("\r\n")}\r\n\r\n${body}`);
}
