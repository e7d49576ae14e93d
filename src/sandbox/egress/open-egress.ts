import { rootCertificates } from "node:tls";
import type { Driver } from "../../../contracts/driver.js";
import { SandboxError } from "../../../contracts/errors.js";
import type {
  BlockedAnswer,
  BlockedRequest,
  NetworkPolicy,
  NetworkRules,
  NetworkWindow,
  SecretRule,
} from "../../../contracts/types.js";
import { type GuestChannel, GuestFailure, listenInside } from "../guest.js";
import { LiveTrust, makeTrust, type Trust, type TrustPlace } from "./authority.js";
import type { EgressConnection } from "./connection.js";
import { createNames } from "./direct/open-names.js";
import { egressEnv } from "./env.js";
import { createInspector } from "./inspect/create-inspector.js";
import type { LiveSecrets } from "./live-secrets.js";
import { type NetworkEntry, parseRules } from "./policy.js";
import { EgressProxy } from "./proxy.js";
import { type BlockedHost, explainBlocked } from "./refusal.js";
import { LiveRules } from "./rules/live-rules.js";
import type { SecretBroker } from "./secret-broker.js";
import { assertReachable } from "./secret-rules.js";
import { createAuditLog } from "./traffic/audit-log.js";
import { createJournal } from "./traffic/journal.js";
import { Traffic } from "./traffic/traffic.js";
import { egressInternals, hostVariables } from "./upstream/internals.js";
import { type UpstreamFor, upstreamFor } from "./upstream/parse-upstream.js";
import { readAuthorities } from "./upstream/read-authorities.js";

export { egressInternals } from "./upstream/internals.js";

/** The proxy's port on the sandbox's own loopback. Where the rule is a list of names, it listens before any program runs. */
const PORT = 3128;

/** The only way out of a sandbox whose network is closed, or a list of names. */
export interface Egress {
  /** Variables that make programs use it; none where the rule lets nothing out. */
  readonly env: Readonly<Record<string, string>>;
  /** Lets these names out, too, until the window is closed. A second one at the same time is `conflict`. */
  openWindow(allow: readonly string[]): Promise<NetworkWindow>;
  /**
   * Replaces the rules, records them first, and cuts what they don't allow. Gives the variables that programs need under them. While a window is
   * open it is `conflict`.
   */
  setRules(network: NetworkPolicy): Promise<Readonly<Record<string, string>>>;
  /** Replaces the secrets, records them first, and cuts connections that used one that is no more, or whose TLS ends elsewhere from now on. */
  setSecrets: NonNullable<Driver["setSecrets"]>;
  /** Lets nothing out from now on. */
  close(): Promise<void>;
}

/** What the authority of a sandbox is for that only trusts further ones: no server ever has this name. */
const NO_HOST = "none.invalid";

/** Makes the authority of an opening; undefined where the TLS of no host ends at the proxy. */
export function makeTrustFor(rules: NetworkRules, broker: SecretBroker | undefined): Trust | undefined {
  const { inspected } = parseRules(rules, { isHostLoopbackKnown: true });
  const names = [...inspected, ...(broker?.hosts ?? [])];
  if (egressInternals.trust !== undefined) return egressInternals.trust();
  if (rules.ca !== undefined) return makeTrust(names.length === 0 ? [NO_HOST] : names, readAuthorities(rules.ca));
  return names.length === 0 ? undefined : makeTrust(names);
}

/** What is known of a sandbox's way out before it is opened. */
export interface EgressOptions {
  /** Undefined: nothing listens until a window is opened. */
  rules: NetworkRules | undefined;
  onBlocked(message: string): void;
  /** Asked before something is refused. Absent: nobody is. */
  ask?: ((request: BlockedRequest) => BlockedAnswer | Promise<BlockedAnswer>) | undefined;
  /** Throws for rules that the machine forbids. */
  checkNetwork?(network: NetworkPolicy): Promise<void>;
  /** Whose connections they are, the private directory of its record, and the path of its audit log. */
  log?: { sandbox: string; directory: string; audit?: string | undefined } | undefined;
  /** Records other rules, before they apply. */
  saveNetwork?(network: NetworkPolicy): Promise<void>;
  /** Records other secrets, before they apply. */
  saveSecrets?(secrets: Readonly<Record<string, SecretRule>>): Promise<void>;
  /** How programs come to trust the certificates of hosts whose TLS ends at the proxy. */
  trust: TrustPlace;
  secrets: LiveSecrets;
  /** Makes the guest able to listen on ports below 1024, where it isn't. Rejects with the reason why programs without a proxy get no names. */
  prepareNames?: (() => Promise<void>) | undefined;
}

/** Opens a proxy in a sandbox without network, for these names and nothing else. It closes with the channel. */
export async function openEgress(channel: GuestChannel, opts: EgressOptions): Promise<Egress> {
  const { secrets } = opts;
  const { broker } = secrets;
  const trust = new LiveTrust(opts.trust);
  const report = (blocked: BlockedHost): void => opts.onBlocked(explainBlocked(blocked));
  const inspector = createInspector({
    authority: () => trust.authority,
    policy: () => proxy.policy,
    broker,
    ca: authoritiesOf(opts.rules),
  });
  const rules = new LiveRules(opts.rules);
  const asking = opts.ask && {
    ask: opts.ask,
    canAllow: (entry: NetworkEntry) => canAllow(entry, opts),
    allow: (entry: NetworkEntry) =>
      rules.add(
        entry,
        async (network) => opts.saveNetwork?.(network),
        (policy) => proxy.widenTo(policy),
      ),
  };
  const traffic = opts.log && openTraffic(opts.log, opts.onBlocked);
  const upstreams = (): UpstreamFor => upstreamFor(rules.upstream, hostVariables());
  // A variable that names no proxy is known at once, and not with the first connection.
  upstreams();
  const proxy: EgressProxy = new EgressProxy(
    {
      policy: rules.policy,
      onBlocked: report,
      upstreamFor: (host, port) => upstreams()(host, port),
      traffic,
      inspector,
      ...(asking && { asking }),
    },
    egressInternals,
  );
  const names = createNames({
    channel,
    proxy,
    prepareNames: opts.prepareNames,
    onFailure: (message) => opts.onBlocked(message),
  });
  let listening: Promise<void> | undefined;
  const listen = async (): Promise<void> => {
    const take = (connection: EgressConnection): void => proxy.accept(connection);
    listening ??= Promise.all([listenInside(channel, PORT, take), names.open()]).then(() => undefined);
    try {
      await listening;
    } catch (error) {
      listening = undefined;
      if (!(error instanceof GuestFailure)) throw error;
      throw new SandboxError("conflict", `A program in the sandbox has taken port ${PORT}`, { retryable: false });
    }
  };
  const env = (): Record<string, string> => egressEnv(PORT, trust.paths);
  // Where nothing is allowed any more, programs go on asking the proxy, which says why.
  const envNow = (): Record<string, string> => (listening === undefined ? {} : env());
  if (opts.rules !== undefined) await listen();
  const closeAll = async (): Promise<void> => {
    names.close();
    await proxy.close();
    traffic?.close();
  };
  channel.onClosed = () => void closeAll().catch(() => undefined);
  return {
    env: opts.rules === undefined ? {} : env(),
    async openWindow(more) {
      rules.openWindow(more);
      const closeWindow = async (): Promise<void> => {
        if (!rules.isOpen) return;
        await proxy.changePolicy(rules.policyWithoutWindow);
        rules.closeWindow();
      };
      try {
        await listen();
        await proxy.changePolicy(rules.policy);
      } catch (error) {
        rules.closeWindow();
        throw error;
      }
      return { env: env(), close: closeWindow, [Symbol.asyncDispose]: closeWindow };
    },
    async setRules(network) {
      const next = typeof network === "string" ? undefined : network;
      await rules.replace(next, async (policy) => {
        assertSameAuthorities(next, opts.rules);
        if (next !== undefined) await listen();
        if (next !== undefined) await trust.cover([...policy.inspected, ...broker.hosts]);
        await opts.saveNetwork?.(network);
        await proxy.narrowTo(policy);
      });
      return envNow();
    },
    async setSecrets(next, signal) {
      return await rules.inTurn(async (network) => {
        assertReachable(next, network);
        const prepared = await secrets.prepare(next, signal);
        try {
          await trust.cover(prepared.hosts);
          await opts.saveSecrets?.(next);
        } catch (error) {
          prepared.discard();
          throw error;
        }
        const { env: placeholders, gone, isRevoked } = prepared.apply();
        await proxy.narrowTo(proxy.policy, isRevoked);
        return { env: { ...envNow(), ...placeholders }, gone };
      });
    },
    close: closeAll,
  };
}

function openTraffic(
  { sandbox, directory, audit }: NonNullable<EgressOptions["log"]>,
  warn: (text: string) => void,
): Traffic {
  return new Traffic(sandbox, {
    journal: createJournal(directory),
    audit: audit === undefined ? undefined : createAuditLog(audit, warn),
  });
}

/** The authorities that the hosts' own certificates may come from. Undefined: those of Node. */
function authoritiesOf(rules: NetworkRules | undefined): readonly string[] | undefined {
  if (rules?.ca === undefined) return egressInternals.ca;
  return [...(egressInternals.ca ?? rootCertificates), ...readAuthorities(rules.ca)];
}

/** Whether somebody may be asked: only about what the machine's policy does not forbid. */
async function canAllow(entry: NetworkEntry, { checkNetwork }: EgressOptions): Promise<boolean> {
  try {
    await checkNetwork?.({ allow: [entry] });
    return true;
  } catch {
    return false;
  }
}

/** The files that programs trust are made when a sandbox is opened. */
function assertSameAuthorities(next: NetworkRules | undefined, had: NetworkRules | undefined): void {
  if (next?.ca === undefined || next.ca === had?.ca) return;
  throw new SandboxError("unsupported", `network.ca ("${next.ca}") can't change while the sandbox is open`, {
    hint: "open another sandbox with it",
  });
}
