import { hostInUrl, parseAuthority } from "./host-name.js";
import { blockedHost, Refusal } from "./refusal.js";
import { headerValues, type RequestHead } from "./request-head.js";

/** The target of a request. */
export interface RequestTarget {
  kind: "tunnel" | "request";
  host: string;
  port: number;
  /** For a request: the path at its origin. */
  path: string;
}

/** Finds the target of a request; a `Refusal` when there is none, or two that differ. */
export function targetOf(head: RequestHead): RequestTarget {
  return head.method === "CONNECT" ? tunnelTarget(head) : requestTarget(head);
}

function tunnelTarget({ target }: RequestHead): RequestTarget {
  const found = parseAuthority(target);
  if (found?.port === undefined) throw malformed(target, "CONNECT wants the name of a host and a port");
  return { kind: "tunnel", host: found.host, port: found.port, path: "" };
}

function requestTarget(head: RequestHead): RequestTarget {
  const url = /^http:\/\/([^/?#]*)([^#]*)$/i.exec(head.target);
  if (!url) throw new Refusal(400, "this is a proxy: it wants a whole http:// address, or CONNECT for everything else");
  const [, authority = "", rest = ""] = url;
  const found = parseAuthority(authority);
  if (found === undefined) throw malformed(authority, "the address names no host that can be understood");
  const { host, port = 80 } = found;
  checkHostHeader(head, host, port, 80);
  return { kind: "request", host, port, path: rest.startsWith("/") ? rest : `/${rest}` };
}

/** Finds the target of a request to a server, as inside the TLS of a tunnel; a `Refusal` when it names another host than the tunnel, or no path. */
export function innerTarget(
  head: RequestHead,
  { host, port }: Pick<RequestTarget, "host" | "port">,
  // The tunnel has named the port, and some programs leave it out of the Host: what is sent on has it.
  usualPort: number = port,
): RequestTarget {
  const isPath = head.target.startsWith("/") || (head.method === "OPTIONS" && head.target === "*");
  if (head.method === "CONNECT" || !isPath || head.target.includes("#")) {
    throw new Refusal(400, "a request to a server names a path on it, and nothing else");
  }
  checkHostHeader(head, host, port, usualPort);
  return { kind: "request", host, port, path: head.target };
}

/** Finds the target of a request from a program that knows no proxy: its one Host, at the port that it came to. A `Refusal` for anything else. */
export function directTarget(head: RequestHead, port: number): RequestTarget {
  const [named] = headerValues(head, "host");
  if (named === undefined) throw new Refusal(400, "the request has no Host");
  const found = parseAuthority(named);
  if (found === undefined) throw malformed(named, "the Host names no host that can be understood");
  const { host } = found;
  // A program may send the whole address all the same, as to a proxy.
  const target = /^http:/i.test(head.target) ? requestTarget(head) : innerTarget(head, { host, port }, 80);
  if (target.port === port) return target;
  throw new Refusal(400, `the request came to port ${port}, and does not name it`);
}

/** The Host header decides which site an origin serves, so it must name the target. */
function checkHostHeader(head: RequestHead, host: string, port: number, usualPort: number): void {
  const named = headerValues(head, "host");
  if (named.length > 1) throw new Refusal(400, "the request has more than one Host");
  const [value] = named;
  if (value === undefined) {
    if (head.version === "1.1") throw new Refusal(400, "the request has no Host");
    return;
  }
  const found = parseAuthority(value);
  if (found?.host === host && (found.port ?? usualPort) === port) return;
  const other = blockedHost(found?.host ?? value, found?.port ?? port, "host_mismatch");
  throw new Refusal(400, `the Host header does not name ${hostInUrl(host)}:${port}`, other);
}

function malformed(host: string, message: string): Refusal {
  return new Refusal(400, message, blockedHost(host, undefined, "malformed_host"));
}
