import { type GuestChannel, listenInside } from "../guest.js";
import { proxyEnv } from "./env.js";
import { parseAllow } from "./policy.js";
import { EgressProxy, type ProxyInternals } from "./proxy.js";
import { type BlockedHost, explainBlocked } from "./refusal.js";

/** Where the proxy listens, on the sandbox's own loopback: nobody else is there yet when it does. */
const PORT = 3128;

/** The one way out of a sandbox whose network is a list of names. */
export interface Egress {
  /** What makes programs use it. */
  readonly env: Readonly<Record<string, string>>;
  /** From now on nothing gets out. */
  close(): Promise<void>;
}

/** Changed by tests only, which have no public host to reach; no option of a sandbox leads here. */
export const egressInternals: ProxyInternals = {};

/** Opens a proxy inside a sandbox that has no network, for these names and nothing else. It ends with the channel. */
export async function openEgress(
  channel: GuestChannel,
  allow: readonly string[],
  onBlocked: (message: string) => void,
): Promise<Egress> {
  const report = (blocked: BlockedHost): void => onBlocked(explainBlocked(blocked));
  const proxy = new EgressProxy({ policy: parseAllow(allow), onBlocked: report }, egressInternals);
  await listenInside(channel, PORT, (connection) => proxy.accept(connection));
  channel.onClosed = () => void proxy.close();
  return { env: proxyEnv(PORT), close: () => proxy.close() };
}
