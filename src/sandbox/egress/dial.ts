import { lookup as systemLookup } from "node:dns/promises";
import { connect, isIP, isIPv4, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { hostValue, isPublicAddress } from "./addresses.js";
import { hostInUrl } from "./host-name.js";
import type { Lifetime } from "./lifetime.js";
import { blockedHost, Refusal } from "./refusal.js";

/** How the proxy gets from a name to a connection. */
export interface Route {
  /** Resolves a name, once. */
  lookup(host: string): Promise<readonly string[]>;
  /** Whether the proxy may connect to an address, whatever its name. */
  isReachable(address: string): boolean;
  /** Milliseconds for the lookup, and for each address that is tried. */
  lookupTimeout: number;
  connectTimeout: number;
}

/** The route to the public internet only. */
export const PUBLIC_ROUTE: Route = {
  lookup: async (host) => (await systemLookup(host, { all: true })).map(({ address }) => address),
  isReachable: (address) => isPublicAddress(address) && !isOwnAddress(address),
  lookupTimeout: 10_000,
  connectTimeout: 10_000,
};

const MAX_ATTEMPTS = 4;

/** Whether an address is one of this host's. What listens on all addresses is reachable by a public one too. */
export function isOwnAddress(address: string): boolean {
  const value = hostValue(address);
  const own = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return own.some((each) => hostValue(each.address.replace(/%.*$/, "")) === value);
}

/** Resolves a host once, and connects to an address that was checked, so that no second answer leads elsewhere. May throw a `Refusal`. */
export async function dial(host: string, port: number, route: Route, life: Lifetime): Promise<Socket> {
  const addresses = await resolve(host, port, route, life);
  let failure: unknown;
  for (const address of addresses) {
    try {
      return await attempt(address, port, route, life);
    } catch (error) {
      failure = error;
    }
  }
  if (failure instanceof Refusal) throw failure;
  const code = (failure as NodeJS.ErrnoException | undefined)?.code ?? "no connection";
  throw new Refusal(code === "ETIMEDOUT" ? 504 : 502, `${hostInUrl(host)}:${port} could not be reached: ${code}`);
}

async function resolve(host: string, port: number, route: Route, life: Lifetime): Promise<string[]> {
  const late = (): Error => new Refusal(504, `the name ${host} was not resolved in time`);
  let found: readonly string[];
  try {
    found = isIP(host) > 0 ? [host] : await life.within(route.lookup(host), route.lookupTimeout, late);
  } catch (error) {
    if (error instanceof Refusal) throw error;
    const code = (error as NodeJS.ErrnoException | undefined)?.code ?? "unknown";
    throw new Refusal(502, `the name ${host} could not be resolved: ${code}`);
  }
  const reachable = found.filter((address) => isIP(address) > 0 && route.isReachable(address));
  if (found.length > 0 && reachable.length === 0) {
    const message = `${hostInUrl(host)} has no public address, and a sandbox can reach no other`;
    throw new Refusal(403, message, blockedHost(host, port, "not_public"));
  }
  const first = reachable.filter((address) => isIPv4(address));
  const then = reachable.filter((address) => !isIPv4(address));
  return [...first, ...then].slice(0, MAX_ATTEMPTS);
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
