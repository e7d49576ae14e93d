import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import type { EgressConnection } from "../../../src/sandbox/egress/connection.js";
import type { Route } from "../../../src/sandbox/egress/dial.js";
import type { DirectPlace } from "../../../src/sandbox/egress/direct/direct-manner.js";
import { type EgressPolicy, parseAllow } from "../../../src/sandbox/egress/policy.js";
import { EgressProxy, type Inspector, type ProxyLimits } from "../../../src/sandbox/egress/proxy.js";
import type { BlockedHost } from "../../../src/sandbox/egress/refusal.js";
import type { Traffic } from "../../../src/sandbox/egress/traffic/traffic.js";

/** A proxy that listens on a real port, and all that it was seen to do. */
export interface RunningProxy extends AsyncDisposable {
  readonly port: number;
  readonly proxy: EgressProxy;
  readonly blocked: BlockedHost[];
  /** Names that were resolved. */
  readonly lookups: string[];
  /** Addresses that were asked about before a connection. */
  readonly checked: string[];
}

/** Where the names of a test lead: an address, several, or an answer that changes. */
export type Names = Readonly<Record<string, string | readonly string[] | (() => Promise<readonly string[]>)>>;

/** Starts a proxy. `names` says what resolves; with `isReachable` the test's own loopback counts as public. */
export async function startProxy(
  allow: readonly string[],
  opts: {
    names?: Names;
    route?: Partial<Route>;
    limits?: Partial<ProxyLimits>;
    isLoopbackPublic?: boolean;
    /** In the place of the list: an address of loopback can stand in no list. */
    policy?: EgressPolicy;
    inspector?: Inspector;
    /** Who connects believes to be at a server, at this port. */
    direct?: DirectPlace;
    traffic?: Traffic;
  } = {},
): Promise<RunningProxy> {
  const { names = {}, isLoopbackPublic = true } = opts;
  const seen = { blocked: [] as BlockedHost[], lookups: [] as string[], checked: [] as string[] };
  const lookup = async (host: string): Promise<readonly string[]> => {
    seen.lookups.push(host);
    const found = names[host];
    if (found === undefined) throw Object.assign(new Error(`no ${host}`), { code: "ENOTFOUND" });
    if (typeof found === "function") return await found();
    return typeof found === "string" ? [found] : found;
  };
  const isReachable = (address: string): boolean => {
    seen.checked.push(address);
    return address === "127.0.0.1";
  };
  const proxy = new EgressProxy(
    {
      policy: opts.policy ?? parseAllow(allow),
      onBlocked: (blocked) => seen.blocked.push(blocked),
      ...(opts.inspector && { inspector: opts.inspector }),
      traffic: opts.traffic,
    },
    { route: { lookup, ...(isLoopbackPublic && { isReachable }), ...opts.route }, limits: opts.limits ?? {} },
  );
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
    proxy.accept(toConnection(socket), opts.direct),
  );
  const port = await listen(server);
  return {
    port,
    proxy,
    ...seen,
    async [Symbol.asyncDispose]() {
      await proxy.close();
      server.close();
      await once(server, "close");
    },
  };
}

/** Makes a socket what the proxy gets from a guest. */
export function toConnection(socket: Socket): EgressConnection {
  socket.on("error", () => undefined);
  return {
    input: socket.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>,
    write: (chunk) =>
      new Promise((resolve, reject) => {
        socket.write(chunk, (error) => (error ? reject(error) : resolve()));
      }),
    end: () =>
      new Promise((resolve) => {
        socket.end(resolve);
      }),
    destroy: () => socket.destroy(),
  };
}

/** Listens on a free port of loopback. */
export async function listen(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** Resolves once the other side has ended, or the socket is closed, by an error as well: `once` would reject then. */
export async function closed(socket: Socket): Promise<void> {
  socket.on("error", () => undefined);
  await new Promise<void>((resolve) => void socket.once("end", resolve).once("close", resolve));
}

/** Sends bytes to a port and gives all that comes back until the other side closes. */
export async function talk(port: number, text: string | Buffer, opts: { keepOpen?: boolean } = {}): Promise<string> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  const received: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => received.push(chunk));
  const over = closed(socket);
  socket.write(typeof text === "string" ? Buffer.from(text, "latin1") : text);
  if (opts.keepOpen !== true) socket.end();
  await over;
  socket.destroy();
  return Buffer.concat(received).toString("latin1");
}

/** The status of an answer. */
export function statusOf(answer: string): number | undefined {
  const found = /^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1];
  return found === undefined ? undefined : Number(found);
}
