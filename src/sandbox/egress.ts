import type { NetworkPolicy } from "../../contracts/types.js";
import type { Egress, openEgress } from "./egress/open-egress.js";

export type { Egress } from "./egress/open-egress.js";
export { firstBeyond, parseAllow } from "./egress/policy.js";
export { networkHint, saysUnresolved } from "./egress/unresolved-name.js";

type OpenArguments = Parameters<typeof openEgress>;

/** What a network without restrictions has in place of a proxy. */
const UNRESTRICTED: Egress = {
  env: {},
  openWindow: async () => ({ env: {}, close: async () => undefined, [Symbol.asyncDispose]: async () => undefined }),
  close: async () => undefined,
};

/**
 * Opens the way out of a sandbox by its rule. For `none`, nothing listens until a window is opened. The code of the proxy is loaded when one is
 * needed.
 */
export async function openEgressFor(
  channel: OpenArguments[0],
  network: NetworkPolicy,
  onBlocked: OpenArguments[2],
): Promise<Egress> {
  if (network === "full") return UNRESTRICTED;
  const allow = network === "none" ? undefined : network.allow;
  const open = async (): Promise<Egress> =>
    await (await import("./egress/open-egress.js")).openEgress(channel, allow, onBlocked);
  return network === "none" ? openedByWindow(open) : await open();
}

function openedByWindow(open: () => Promise<Egress>): Egress {
  let opened: Promise<Egress> | undefined;
  return {
    env: {},
    async openWindow(allow) {
      opened ??= open();
      return await (await opened).openWindow(allow);
    },
    async close() {
      await (await opened)?.close();
    },
  };
}
