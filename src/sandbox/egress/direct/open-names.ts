import { type GuestChannel, knowsNames, listenAt, resolveInside, stopListeningAt } from "../../guest.js";
import { DEFAULT_PORTS, entryFor } from "../policy.js";
import type { EgressProxy } from "../proxy.js";
import { type Listening, NameListeners, SHARED_ADDRESS } from "./name-listeners.js";
import { createPace } from "./pace.js";
import { type KnownNames, resolveName } from "./resolver.js";
import { serveQueries } from "./serve-queries.js";

const DNS_PORT = 53;
/** A program that asks more often waits for its answers. */
const QUERIES_PER_SECOND = 500;
const QUERIES_AT_ONCE = 100;
/** At the same time, of queries. */
const MAX_CONNECTIONS = 16;
const LEASE = 120_000;

/** What programs that know no proxy need: names that lead to listeners in the sandbox, from where the proxy goes on. */
export interface Names {
  /** Starts the resolver in the sandbox, once. */
  open(): Promise<void>;
  close(): void;
}

/** Prepares the names of a sandbox. Nothing listens until they are opened. */
export function createNames(opts: {
  channel: GuestChannel;
  proxy: EgressProxy;
  /** Makes the guest able to listen on low ports, where it isn't. */
  prepareNames?: (() => Promise<void>) | undefined;
  /** Learns why there are no names. */
  onFailure(message: string): void;
}): Names {
  const { channel, proxy } = opts;
  const listening: Listening = {
    lease: LEASE,
    listen: (place, onUse) =>
      listenAt(channel, place, (connection) => {
        onUse();
        const { port, host } = place;
        const isPlain = host !== undefined && proxy.policy.isPlain(host, port);
        proxy.accept(connection, { port, ...(isPlain && { host }) });
      }),
    stop: (place) => stopListeningAt(channel, place),
  };
  const listeners = new NameListeners(listening);
  const known: KnownNames = {
    // Somebody is asked about a connection, when its port is known.
    isKnown: (host) => proxy.policy.portsOf(host).length > 0 || (proxy.asks && entryFor(host, 443) !== undefined),
    addressOf(host) {
      const ports = proxy.policy.portsOf(host);
      const hasPlain = ports.some((port) => proxy.policy.isPlain(host, port));
      return listeners.addressOf(host, ports.length > 0 ? ports : DEFAULT_PORTS, hasPlain);
    },
    onUnknown: (host) => proxy.reportUnknown(host),
  };
  const pace = createPace(QUERIES_PER_SECOND, QUERIES_AT_ONCE);
  const answer = async (query: Buffer): Promise<Buffer | undefined> => {
    await pace();
    return await resolveName(query, known);
  };
  const start = async (): Promise<void> => {
    if (!knowsNames(channel)) throw new Error("its guest is of an older version");
    await opts.prepareNames?.();
    let connections = 0;
    await listenAt(channel, { address: SHARED_ADDRESS, port: DNS_PORT }, (connection) => {
      if (connections >= MAX_CONNECTIONS) return connection.destroy();
      connections++;
      void serveQueries(connection, answer).finally(() => connections--);
    });
    await resolveInside(channel, SHARED_ADDRESS, answer);
  };
  let opened: Promise<void> | undefined;
  return {
    async open() {
      opened ??= start().catch((error: unknown) => {
        if (channel.isClosed) throw error;
        const reason = error instanceof Error ? error.message : String(error);
        opts.onFailure(`programs that know no proxy resolve no names in this sandbox: ${reason}`);
      });
      await opened;
    },
    close: () => listeners.close(),
  };
}
