import { isIP, type Socket } from "node:net";
import { connect, rootCertificates } from "node:tls";
import type { NetworkPolicy } from "../../../../../contracts/types.js";
import { Lifetime } from "../../lifetime.js";
import { dialUpstream } from "../../upstream/dial-upstream.js";
import { hostVariables } from "../../upstream/internals.js";
import { type UpstreamFor, upstreamFor } from "../../upstream/parse-upstream.js";
import { readAuthorities } from "../../upstream/read-authorities.js";

/** How this machine reaches token endpoints. */
export interface TokenRoute {
  readonly upstreamFor: UpstreamFor;
  /** The authorities that an endpoint's certificate may come from, as PEM. Undefined: those of Node. */
  readonly ca: readonly string[] | undefined;
}

/** The way that the network of a sandbox names: through its upstream proxy, with its authorities. */
export function tokenRoute(network: NetworkPolicy): TokenRoute {
  const { upstream, ca } = typeof network === "string" ? {} : network;
  return {
    upstreamFor: upstreamFor(upstream, hostVariables()),
    ca: ca === undefined ? undefined : [...rootCertificates, ...readAuthorities(ca)],
  };
}

/** Opens a connection with TLS to an endpoint through the upstream proxy for it; undefined where there is none. The certificate is verified. */
export async function connectUpstream(
  { hostname, port: named }: URL,
  { upstreamFor: find }: TokenRoute,
  ca: readonly string[] | undefined,
  timeout: number,
): Promise<Socket | undefined> {
  const [host, port] = [hostname.replace(/^\[(.*)\]$/, "$1"), Number(named || 443)];
  const upstream = find(host, port);
  if (upstream === undefined) return undefined;
  const life = new Lifetime(timeout);
  const socket = await dialUpstream({ host, port }, upstream, life, timeout);
  socket.once("close", () => life.end());
  const name = isIP(host) === 0 && { servername: host };
  // Whatever NODE_TLS_REJECT_UNAUTHORIZED says.
  return connect({ socket, host, ...name, ...(ca && { ca: [...ca] }), rejectUnauthorized: true });
}
