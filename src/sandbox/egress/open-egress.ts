import { SandboxError } from "../../../contracts/errors.js";
import type { NetworkWindow } from "../../../contracts/types.js";
import { type GuestChannel, GuestFailure, listenInside } from "../guest.js";
import { proxyEnv } from "./env.js";
import { parseAllow } from "./policy.js";
import { EgressProxy, type ProxyInternals } from "./proxy.js";
import { type BlockedHost, explainBlocked } from "./refusal.js";

/** The proxy's port on the sandbox's own loopback. Where the rule is a list of names, it listens before any program runs. */
const PORT = 3128;

/** The only way out of a sandbox whose network is closed, or a list of names. */
export interface Egress {
  /** Variables that make programs use it; none where the rule lets nothing out. */
  readonly env: Readonly<Record<string, string>>;
  /** Lets these names out, too, until the window is closed. A second one at the same time is `conflict`. */
  openWindow(allow: readonly string[]): Promise<NetworkWindow>;
  /** Lets nothing out from now on. */
  close(): Promise<void>;
}

/** Only tests change it, since they have no public host to reach. No option of a sandbox leads here. */
export const egressInternals: ProxyInternals = {};

/** Opens a proxy in a sandbox without network, for these names and nothing else. It closes with the channel. */
export async function openEgress(
  channel: GuestChannel,
  allow: readonly string[] | undefined,
  onBlocked: (message: string) => void,
): Promise<Egress> {
  const report = (blocked: BlockedHost): void => onBlocked(explainBlocked(blocked));
  const rule = parseAllow(allow ?? []);
  const proxy = new EgressProxy({ policy: rule, onBlocked: report }, egressInternals);
  let listening: Promise<void> | undefined;
  const listen = (): Promise<void> => {
    listening ??= listenInside(channel, PORT, (connection) => proxy.accept(connection));
    return listening;
  };
  if (allow !== undefined) await listen();
  channel.onClosed = () => void proxy.close();
  let isOpen = false;
  return {
    env: allow === undefined ? {} : proxyEnv(PORT),
    async openWindow(more) {
      const wider = parseAllow([...(allow ?? []), ...more]);
      if (isOpen)
        throw new SandboxError("conflict", "The network of the sandbox is already open", { retryable: false });
      isOpen = true;
      const close = async (): Promise<void> => {
        if (!isOpen) return;
        await proxy.changePolicy(rule);
        isOpen = false;
      };
      try {
        await listen();
        await proxy.changePolicy(wider);
      } catch (error) {
        isOpen = false;
        if (!(error instanceof GuestFailure)) throw error;
        listening = undefined;
        throw new SandboxError("conflict", `A program in the sandbox has taken port ${PORT}`, { retryable: false });
      }
      return { env: proxyEnv(PORT), close, [Symbol.asyncDispose]: close };
    },
    close: () => proxy.close(),
  };
}
