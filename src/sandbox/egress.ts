import type { SandboxEntry } from "../../contracts/backend.js";
import type { Driver } from "../../contracts/driver.js";
import { SandboxError } from "../../contracts/errors.js";
import type { SandboxOptions } from "../../contracts/sandbox.js";
import type { NetworkPolicy } from "../../contracts/types.js";
import { runtimeDir } from "../machine/home.js";
import type { Trust } from "./egress/authority.js";
import { LiveSecrets } from "./egress/live-secrets.js";
import type { Egress, EgressOptions, openEgress } from "./egress/open-egress.js";
import { assertReachable } from "./egress/secret-rules.js";
import { JournalReader } from "./egress/traffic/journal.js";

export { hashedName, type Trust, trustPaths } from "./egress/authority.js";
export { RESOLVER_ADDRESS } from "./egress/direct/resolver-address.js";
export type { LiveSecrets } from "./egress/live-secrets.js";
export type { Egress, EgressOptions } from "./egress/open-egress.js";
export { firstBeyond, parseAllow, parseRules } from "./egress/policy.js";
export { entryText, parseEntryText } from "./egress/rules/entry-text.js";
export { mergeEntries, needsNetworkRules, toNames } from "./egress/rules/list-entries.js";
export { networkSchema } from "./egress/rules/network-schema.js";
export { networkRule } from "./egress/rules/rule-schema.js";
export { assertReachable, assertVariables, namedSecret, secretsSchema } from "./egress/secret-rules.js";
export { checkAuditFile } from "./egress/traffic/audit-log.js";
export { networkHint, saysUnresolved } from "./egress/unresolved-name.js";

type GuestChannel = Parameters<typeof openEgress>[0];

/** What a network without restrictions has in place of a proxy. */
const UNRESTRICTED: Egress = {
  env: {},
  setRules: async () => {
    throw new SandboxError("unsupported", 'The network of a sandbox that was made with "full" can\'t be restricted', {
      hint: "open another sandbox with the rules that you want",
    });
  },
  setSecrets: async (secrets) => {
    assertReachable(secrets, "full");
    return { env: {}, gone: [] };
  },
  openWindow: async () => ({ env: {}, close: async () => undefined, [Symbol.asyncDispose]: async () => undefined }),
  close: async () => undefined,
};

/** Opens what the network of a sandbox has done, by its id. One without connections, or on another machine, has no events. */
export function openNetworkJournal(id: string): JournalReader {
  return new JournalReader(runtimeDir(id));
}

/** What the proxy of a sandbox asks of its entry, and of whoever opened it. */
export function superviseEgress(
  entry: SandboxEntry,
  { onBlocked, audit }: Pick<SandboxOptions, "onBlocked" | "audit">,
): Pick<EgressOptions, "onBlocked" | "ask" | "checkNetwork" | "saveNetwork" | "saveSecrets" | "log"> {
  return {
    onBlocked: (text) => entry.warn(text),
    ask: onBlocked,
    log: { sandbox: entry.id, directory: entry.directory, audit },
    checkNetwork: (network) => entry.checkNetwork(network),
    saveNetwork: (network) => entry.saveNetwork(network),
    saveSecrets: (secrets) => entry.saveSecrets(secrets),
  };
}

/** The calls of a driver that change what its proxy lets out, and puts in. */
export function networkOperations(egress: Egress): Required<Pick<Driver, "openNetwork" | "setNetwork" | "setSecrets">> {
  return {
    openNetwork: (allow) => egress.openWindow(allow),
    setNetwork: async (network) => ({ env: await egress.setRules(network) }),
    setSecrets: (secrets, signal) => egress.setSecrets(secrets, signal),
  };
}

/**
 * Makes the certificate authority of an opening, for the hosts whose TLS ends at the proxy; undefined where there are none. Each opening has its
 * own: a sandbox that is reopened gets another, and so does every fork.
 */
export async function trustFor(network: NetworkPolicy, secrets: LiveSecrets): Promise<Trust | undefined> {
  if (typeof network === "string") return undefined;
  return (await import("./egress/open-egress.js")).makeTrustFor(network, secrets.broker);
}

/**
 * Fetches the secrets of a sandbox and makes their placeholders, before `make` makes anything else. They are forgotten if that fails; otherwise
 * whoever closes the sandbox closes them, too.
 */
export async function withSecrets<T>(
  opts: SandboxOptions,
  entry: SandboxEntry,
  make: (secrets: LiveSecrets) => Promise<T>,
): Promise<T> {
  const { repo, baseDir, mounts = [], gitAlternates = [] } = opts;
  const places = [repo, baseDir, ...mounts.map(({ source }) => source), ...gitAlternates];
  const visible = places.filter((path) => path !== undefined);
  const secrets = new LiveSecrets({ visible, network: () => entry.network });
  try {
    if (Object.keys(entry.secrets).length > 0) (await secrets.prepare(entry.secrets, entry.signal)).apply();
    return await make(secrets);
  } catch (error) {
    secrets.close();
    throw error;
  }
}

/**
 * Opens the way out of a sandbox by its rule. For `none`, nothing listens until a window is opened. The code of the proxy is loaded when one is
 * needed.
 */
export async function openEgressFor(
  channel: GuestChannel,
  network: NetworkPolicy,
  opts: Omit<EgressOptions, "rules">,
): Promise<Egress> {
  if (network === "full") return UNRESTRICTED;
  const rules = network === "none" ? undefined : network;
  const open = async (): Promise<Egress> =>
    await (await import("./egress/open-egress.js")).openEgress(channel, { ...opts, rules });
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
    async setSecrets(secrets, signal) {
      if (opened === undefined) assertReachable(secrets, "none");
      opened ??= open();
      return await (await opened).setSecrets(secrets, signal);
    },
    async setRules(network) {
      if (network === "none" && opened === undefined) return {};
      opened ??= open();
      return await (await opened).setRules(network);
    },
    async close() {
      await (await opened)?.close();
    },
  };
}
