import { isIP, type Socket } from "node:net";
import { connect, type TLSSocket } from "node:tls";
import { hostInUrl } from "../host-name.js";
import type { Lifetime } from "../lifetime.js";
import { Refusal } from "../refusal.js";
import type { RequestTarget } from "../request-target.js";

/** How to reach an origin by TLS. */
export interface OriginRoute {
  /** Opens a connection that the rules allow. */
  dial(): Promise<Socket>;
  /** The authorities that its certificate may come from, as PEM. Undefined: those of Node. */
  ca: readonly string[] | undefined;
  /** Milliseconds for the handshake. */
  timeout: number;
}

/** Connects to an origin, and verifies its certificate before anything is sent. With `h2`, it must agree on that. */
export async function connectOrigin(
  { host, port }: RequestTarget,
  route: OriginRoute,
  life: Lifetime,
  protocol: "h2" | "http/1.1",
): Promise<TLSSocket> {
  const where = `${hostInUrl(host)}:${port}`;
  const plain = await route.dial();
  const socket = connect({
    socket: plain,
    host,
    // An address is no name that a hello could carry.
    ...(isIP(host) === 0 && { servername: host }),
    ALPNProtocols: [protocol],
    // Without it, NODE_TLS_REJECT_UNAUTHORIZED could say that any certificate will do.
    rejectUnauthorized: true,
    ...(route.ca && { ca: [...route.ca] }),
  });
  const verified = new Promise<void>((resolve, reject) => {
    socket.once("secureConnect", resolve);
    socket.once("error", (error: NodeJS.ErrnoException) => reject(unverified(where, protocol, error)));
    socket.once("close", () => reject(unverified(where, protocol)));
  });
  try {
    const late = (): Error => new Refusal(504, `the TLS handshake with ${where} took too long`);
    await life.within(verified, route.timeout, late);
    if (protocol === "h2" && socket.alpnProtocol !== "h2") throw speaksOther(where, protocol);
  } catch (error) {
    socket.destroy();
    throw error;
  }
  socket.on("error", () => undefined); // the request fails
  // Half of it would stay open, and the next request would be sent there and never be answered.
  socket.once("end", () => socket.destroy());
  return socket;
}

type Protocol = Parameters<typeof connectOrigin>[3];

function unverified(where: string, protocol: Protocol, error?: NodeJS.ErrnoException): Refusal {
  if (/NO_APPLICATION_PROTOCOL/.test(error?.code ?? "")) return speaksOther(where, protocol);
  return new Refusal(502, `no verified TLS connection to ${where}: ${error?.code ?? "it was closed"}`);
}

function speaksOther(where: string, protocol: Protocol): Refusal {
  const message =
    protocol === "h2"
      ? `${where} speaks no HTTP/2, and the program speaks nothing else`
      : `${where} speaks no HTTP/1.1, which a program that speaks it as well as HTTP/2 has to use here`;
  return new Refusal(502, message);
}
