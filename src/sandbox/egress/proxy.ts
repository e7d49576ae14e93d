import { ClientStream } from "./client-stream.js";
import type { EgressConnection } from "./connection.js";
import { PUBLIC_ROUTE, type Route } from "./dial.js";
import { finish } from "./finish.js";
import { forward } from "./forward.js";
import { hostInUrl } from "./host-name.js";
import { Lifetime } from "./lifetime.js";
import { type EgressPolicy, parseAllow } from "./policy.js";
import { type BlockedHost, blockedHost, Refusal, reportOnce, toAnswer } from "./refusal.js";
import { readHead } from "./request-head.js";
import { type RequestTarget, targetOf } from "./request-target.js";
import { type Exchange, tunnel } from "./tunnel.js";

/** The limits of a proxy, in milliseconds and connections. */
export interface ProxyLimits {
  /** Open connections. */
  connections: number;
  /** From the start of a connection to the end of its head, and from there to the end of a tunnel's TLS hello. */
  head: number;
  /** From a request to the head of its response. */
  response: number;
  /** No byte in either direction. */
  idle: number;
  /** For a refused program that goes on sending, until the connection is cut. */
  linger: number;
}

/** What tests replace: the internet, and the limits. */
export interface ProxyInternals {
  route?: Partial<Route>;
  limits?: Partial<ProxyLimits>;
}

const LIMITS: ProxyLimits = { connections: 256, head: 30_000, response: 300_000, idle: 900_000, linger: 2_000 };

/** The only way out of a sandbox whose network is a list of names: an HTTP proxy that goes nowhere else. */
export class EgressProxy {
  #policy: EgressPolicy;
  readonly #report: (blocked: BlockedHost) => void;
  readonly #route: Route;
  readonly #limits: ProxyLimits;
  readonly #open = new Map<Lifetime, Promise<void>>();
  #turnedAway = 0;
  #isClosed = false;

  /** `internals` are for tests; no option of a sandbox leads there. */
  constructor(opts: { policy: EgressPolicy; onBlocked(blocked: BlockedHost): void }, internals: ProxyInternals = {}) {
    this.#policy = opts.policy;
    this.#report = reportOnce((blocked) => opts.onBlocked(blocked));
    this.#route = { ...PUBLIC_ROUTE, ...internals.route };
    this.#limits = { ...LIMITS, ...internals.limits };
  }

  /** How many connections are open. */
  get connections(): number {
    return this.#open.size;
  }

  /** Serves a connection. Never throws: a failure ends that connection and nothing else. */
  accept(connection: EgressConnection): void {
    if (this.#isClosed) cut(connection);
    else if (this.#open.size < this.#limits.connections) this.#take(connection);
    else this.#turnAway(connection);
  }

  /** Applies other rules from now on. Every connection is cut, since it was made under the old ones; resolves when all have ended. */
  async changePolicy(policy: EgressPolicy): Promise<void> {
    this.#policy = policy;
    await this.#endAll("the rules of the proxy have changed");
  }

  /** Ends every connection and accepts no more; resolves when all have ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#endAll("the proxy is closed");
  }

  async #endAll(why: string): Promise<void> {
    const served = [...this.#open.values()];
    for (const life of this.#open.keys()) life.end(new Error(why));
    await Promise.all(served);
  }

  #take(connection: EgressConnection): void {
    const life = new Lifetime(this.#limits.idle);
    life.onEnd(() => cut(connection));
    const served = this.#serve(connection, life)
      .catch(() => undefined)
      .finally(() => {
        life.end();
        this.#open.delete(life);
      });
    this.#open.set(life, served);
  }

  /** Answers that too many connections are open, to as many as the limit, and cuts the rest. */
  #turnAway(connection: EgressConnection): void {
    if (this.#turnedAway >= this.#limits.connections) {
      cut(connection);
      return;
    }
    this.#turnedAway++;
    setTimeout(() => {
      this.#turnedAway--;
      cut(connection);
    }, this.#limits.linger).unref();
    Promise.resolve()
      .then(() => connection.write(toAnswer(new Refusal(503, "too many connections are open"))))
      .then(() => connection.end())
      .catch(() => undefined);
  }

  async #serve(connection: EgressConnection, life: Lifetime): Promise<void> {
    const client = new ClientStream(connection, life);
    try {
      const late = (): Error => new Refusal(408, "the head of the request took too long");
      const head = await life.within(readHead(client), this.#limits.head, late);
      if (head === undefined) return;
      const target = targetOf(head);
      this.#check(target);
      const exchange: Exchange = { client, life, route: this.#route, report: this.#report };
      if (target.kind === "tunnel") {
        const isPlain = this.#policy.isPlain(target.host, target.port);
        await tunnel(exchange, target, { isPlain, timeout: this.#limits.head });
      } else {
        await forward(exchange, head, target, this.#limits.response);
        await finish(client, life, this.#limits.linger);
      }
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (error.blocked) this.#report(error.blocked);
      await client.write(toAnswer(error));
      await finish(client, life, this.#limits.linger);
    }
  }

  /** Before anything is resolved: no resolver gets a name that is not allowed. */
  #check({ host, port }: RequestTarget): void {
    if (this.#policy.isAllowed(host, port)) return;
    const message = `the network rule of this sandbox does not allow ${hostInUrl(host)}:${port}`;
    throw new Refusal(403, message + howToAllow(host, port), blockedHost(host, port, "not_allowed"));
  }
}

function howToAllow(host: string, port: number): string {
  const entry = port === 80 || port === 443 ? hostInUrl(host) : `${hostInUrl(host)}:${port}`;
  try {
    parseAllow([entry]);
    return `\nto allow it: network: { allow: ["${entry}"] }`;
  } catch {
    return ", and it cannot be allowed";
  }
}

function cut(connection: EgressConnection): void {
  try {
    connection.destroy();
  } catch {
    // It is closed one way or the other.
  }
}
