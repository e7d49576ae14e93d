import { type GuestChannel, listenInside } from "../guest.js";
import { proxyEnv } from "./env.js";
import { parseAllow } from "./policy.js";
import { EgressProxy, type ProxyInternals } from "./proxy.js";
import { type BlockedHost, explainBlocked } from "./refusal.js";

/** The proxy's port on the sandbox's own loopback. It listens before any program runs. */
const PORT = 3128;

/** The only way out of a sandbox whose network is a list of names. */
export interface Egress {
  /** Variables that make programs use it. */
  readonly env: Readonly<Record<string, string>>;
  /** Lets nothing out from now on. */
  close(): Promise<void>;
}

/** Only tests change it, since they have no public host to reach. No option of a sandbox leads here. */
export const egressInternals: ProxyInternals = {};

/** Opens a proxy in a sandbox without network, for these names and nothing else. It closes with the channel. */
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
