import { lookup as systemLookup } from "node:dns/promises";
import { connect, isIP, isIPv4, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { hostValue, isPrivateAddress, isPublicAddress } from "./addresses.js";
import { hostInUrl } from "./host-name.js";
import type { Lifetime } from "./lifetime.js";
import type { Reach } from "./policy.js";
import { blockedHost, Refusal } from "./refusal.js";
import { dialUpstream } from "./upstream/dial-upstream.js";
import type { UpstreamFor } from "./upstream/parse-upstream.js";

/** How the proxy gets from a name to a connection. */
export interface Route {
  /** Resolves a name, once. */
  lookup(host: string): Promise<readonly string[]>;
  /** Whether the proxy may connect to an address, whatever its name, for a rule that reaches public ones or private ones. */
  isReachable(address: string, scope: "public" | "private"): boolean;
  /** The upstream proxy for a host and port. Absent: none. */
  upstreamFor?: UpstreamFor | undefined;
  /** Milliseconds for the lookup, and for each address that is tried. */
  lookupTimeout: number;
  connectTimeout: number;
}

/** The route to the public internet, and to private networks where a rule says so. */
export const PUBLIC_ROUTE: Route = {
  lookup: async (host) => (await systemLookup(host, { all: true })).map(({ address }) => address),
  isReachable: (address, scope) =>
    (scope === "private" ? isPrivateAddress(address) : isPublicAddress(address)) && !isOwnAddress(address),
  lookupTimeout: 10_000,
  connectTimeout: 10_000,
};

const MAX_ATTEMPTS = 4;
const LOOPBACK = ["127.0.0.1", "::1"];

/** Whether an address is one of this host's. What listens on all addresses is reachable by a public one too. */
export function isOwnAddress(address: string): boolean {
  const value = hostValue(address);
  const own = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return own.some((each) => hostValue(each.address.replace(/%.*$/, "")) === value);
}

/** A host to connect to, and which of its addresses may be used. */
export interface Target {
  readonly host: string;
  readonly port: number;
  readonly reach: Reach;
}

/** A connection, and the address that it leads to. Undefined where an upstream proxy has resolved the name. */
interface Dialed {
  readonly socket: Socket;
  readonly address: string | undefined;
}

/** Resolves a host once, and connects to an address that was checked, so that no second answer leads elsewhere. May throw a `Refusal`. */
export async function dial(target: Target, route: Route, life: Lifetime): Promise<Dialed> {
  const { host, port, reach } = target;
  const upstream = reach.scopes.every((scope) => scope === "public") ? route.upstreamFor?.(host, port) : undefined;
  if (upstream !== undefined) {
    // The upstream resolves names, and nothing is known of their addresses.
    if (isIP(host) > 0) await resolve(target, route, life);
    return { socket: await dialUpstream(target, upstream, life, route.connectTimeout), address: undefined };
  }
  const addresses = reach.scopes.includes("loopback") ? LOOPBACK : await resolve(target, route, life);
  let failure: unknown;
  for (const address of addresses) {
    try {
      return { socket: await attempt(address, port, route, life), address };
    } catch (error) {
      failure = error;
    }
  }
  if (failure instanceof Refusal) throw failure;
  const code = (failure as NodeJS.ErrnoException | undefined)?.code ?? "no connection";
  throw new Refusal(code === "ETIMEDOUT" ? 504 : 502, `${hostInUrl(host)}:${port} could not be reached: ${code}`);
}

async function resolve({ host, port, reach }: Target, route: Route, life: Lifetime): Promise<string[]> {
  const late = (): Error => new Refusal(504, `the name ${host} was not resolved in time`);
  let found: readonly string[];
  try {
    found = isIP(host) > 0 ? [host] : await life.within(route.lookup(host), route.lookupTimeout, late);
  } catch (error) {
    if (error instanceof Refusal) throw error;
    const code = (error as NodeJS.ErrnoException | undefined)?.code ?? "unknown";
    throw new Refusal(502, `the name ${host} could not be resolved: ${code}`);
  }
  const reachable = found.filter((address) => isIP(address) > 0 && isInReach(address, reach, route));
  if (found.length > 0 && reachable.length === 0) throw outOfReach(host, port, found, reach);
  const first = reachable.filter((address) => isIPv4(address));
  const then = reachable.filter((address) => !isIPv4(address));
  return [...first, ...then].slice(0, MAX_ATTEMPTS);
}

function isInReach(address: string, { scopes, isDenied }: Reach, route: Route): boolean {
  if (isDenied(address)) return false;
  return scopes.some((scope) => scope !== "loopback" && route.isReachable(address, scope));
}

function outOfReach(host: string, port: number, found: readonly string[], { scopes, isDenied }: Reach): Refusal {
  const name = hostInUrl(host);
  if (found.every((address) => isDenied(address))) {
    return new Refusal(403, `network.deny has every address of ${name}`, blockedHost(host, port, "denied"));
  }
  const message = scopes.includes("public")
    ? `${name} has no public address, and a sandbox can reach no other without a rule that says private`
    : `${name} has no private address, and its rule reaches no other`;
  return new Refusal(403, message, blockedHost(host, port, scopes.includes("public") ? "not_public" : "not_private"));
}

async function attempt(address: string, port: number, route: Route, life: Lifetime): Promise<Socket> {
  const socket = connect({ host: address, port, family: isIP(address), allowHalfOpen: true, noDelay: true });
  life.onEnd(() => socket.destroy());
  const connected = new Promise<void>((done, fail) => {
    socket.once("connect", done);
    socket.once("error", fail);
    socket.once("close", () => fail(new Error("closed")));
  });
  try {
    await life.within(connected, route.connectTimeout, () => new Refusal(504, "the connection was not made in time"));
    socket.on("error", () => undefined); // the next read or write fails
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

/** Writes to a socket and resolves when the system has taken the bytes. */
export function writeTo(socket: Socket, chunk: Uint8Array, life: Lifetime): Promise<void> {
  return life.during(
    new Promise((resolve, reject) => {
      socket.write(chunk, (error) => (error ? reject(error) : resolve()));
    }),
  );
}
