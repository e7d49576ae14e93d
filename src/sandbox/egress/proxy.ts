import type { BlockedAnswer, BlockedRequest } from "../../../contracts/types.js";
import { ClientStream } from "./client-stream.js";
import type { EgressConnection } from "./connection.js";
import { dial, PUBLIC_ROUTE, type Route } from "./dial.js";
import { type DirectPlace, directManner, SILENT_MANNER } from "./direct/direct-manner.js";
import { proxyManner } from "./direct/manner.js";
import { finish } from "./finish.js";
import { forward } from "./forward.js";
import { hostInUrl } from "./host-name.js";
import { type Inspection, inspect } from "./inspect/inspect.js";
import { Lifetime } from "./lifetime.js";
import { type EgressPolicy, entryFor, privateRuleFor, type RequestFacts, ruleFor } from "./policy.js";
import { type BlockedHost, blockedHost, Refusal, reportOnce, toAnswer } from "./refusal.js";
import type { RequestTarget } from "./request-target.js";
import { Admitted } from "./rules/admitted.js";
import { entryText } from "./rules/entry-text.js";
import { HOST_LOOPBACK } from "./rules/network-entry.js";
import { type Asking, type OpenQuestion, Questions } from "./traffic/questions.js";
import type { Passing, Traffic } from "./traffic/traffic.js";
import { type Exchange, tunnel } from "./tunnel.js";
import type { UpstreamFor } from "./upstream/parse-upstream.js";

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
  /** To the answer of whoever is asked about a blocked host. */
  question: number;
}

/** What tests replace: the internet, and the limits. */
export interface ProxyInternals {
  route?: Partial<Route>;
  limits?: Partial<ProxyLimits>;
}

const LIMITS: ProxyLimits = {
  connections: 256,
  head: 30_000,
  response: 300_000,
  idle: 900_000,
  linger: 2_000,
  question: 60_000,
};

/** What the audit log has for the rule of a connection that somebody allowed. */
const ASKED = "onBlocked";

/** What the proxy does to hosts whose requests it looks at. */
export interface Inspector {
  /** Undefined for a host whose TLS stays end to end. */
  inspectionOf(host: string, port: number): Omit<Inspection, "limits" | "begin"> | undefined;
}

/** A connection that is being served. */
interface Served {
  readonly done: Promise<void>;
  admitted?: Admitted;
}

/** The only way out of a sandbox whose network is a list of names: an HTTP proxy that goes nowhere else. */
export class EgressProxy {
  #policy: EgressPolicy;
  readonly #inspector: Inspector | undefined;
  readonly #report: (blocked: BlockedHost, method?: string) => void;
  readonly #route: Route;
  readonly #limits: ProxyLimits;
  readonly #questions: Questions | undefined;
  readonly #traffic: Traffic | undefined;
  readonly #open = new Map<Lifetime, Served>();
  #turnedAway = 0;
  #isClosed = false;

  /** `internals` are for tests; no option of a sandbox leads there. */
  constructor(
    opts: {
      policy: EgressPolicy;
      inspector?: Inspector;
      /** Who is asked before something is refused. Absent: nobody. */
      asking?: Omit<Asking, "timeout">;
      /** Where everything is written down. Absent: nowhere. */
      traffic?: Traffic | undefined;
      onBlocked(blocked: BlockedHost): void;
      upstreamFor?: UpstreamFor;
    },
    internals: ProxyInternals = {},
  ) {
    this.#policy = opts.policy;
    this.#inspector = opts.inspector;
    this.#traffic = opts.traffic;
    const warn = reportOnce((blocked) => opts.onBlocked(blocked));
    this.#report = (blocked, method) => {
      this.#traffic?.blocked(blocked, method);
      warn(blocked);
    };
    this.#route = { ...PUBLIC_ROUTE, upstreamFor: opts.upstreamFor, ...internals.route };
    this.#limits = { ...LIMITS, ...internals.limits };
    this.#questions = opts.asking && new Questions({ ...opts.asking, timeout: this.#limits.question });
  }

  /** How many connections are open. */
  get connections(): number {
    return this.#open.size;
  }

  /** The rules that apply now. */
  get policy(): EgressPolicy {
    return this.#policy;
  }

  /**
   * Serves a connection: of a program that knows the proxy, or, with `direct`, of one that believes to be at its server. Never throws: a failure
   * ends that connection and nothing else.
   */
  accept(connection: EgressConnection, direct?: DirectPlace): void {
    if (this.#isClosed) cut(connection);
    else if (this.#open.size < this.#limits.connections) this.#take(connection, direct);
    else if (direct !== undefined) cut(connection);
    else this.#turnAway(connection);
  }

  /** Whether somebody may be asked before a host is refused. */
  get asks(): boolean {
    return this.#questions !== undefined;
  }

  /** Reports a name that a program looked up and may not reach, at whatever port. */
  reportUnknown(host: string): void {
    this.#report(blockedHost(host, undefined, "not_allowed"));
  }

  /** Applies other rules from now on. Every connection is cut, since it was made under the old ones; resolves when all have ended. */
  async changePolicy(policy: EgressPolicy): Promise<void> {
    this.#policy = policy;
    await this.#endAll("the rules of the proxy have changed");
  }

  /**
   * Applies other rules from now on, and cuts what they don't allow. What still waits to be let through is judged by them. `isRevoked`: whether a
   * host had a secret that it has no more.
   */
  async narrowTo(
    policy: EgressPolicy,
    isRevoked: (host: string, port: number) => boolean = () => false,
  ): Promise<void> {
    this.#policy = policy;
    const isInspected = (host: string, port: number): boolean =>
      this.#inspector?.inspectionOf(host, port) !== undefined;
    await this.#end(
      "the rules of the proxy have changed",
      (admitted) =>
        admitted !== undefined && (!admitted.stillPasses(policy, isInspected) || admitted.isInspectedFor(isRevoked)),
    );
  }

  /** Applies rules that allow more than those before. Nothing is cut. */
  widenTo(policy: EgressPolicy): void {
    this.#policy = policy;
  }

  /** Ends every connection and accepts no more; resolves when all have ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#endAll("the proxy is closed");
  }

  async #endAll(why: string): Promise<void> {
    await this.#end(why, () => true);
  }

  async #end(why: string, isOver: (admitted: Admitted | undefined) => boolean): Promise<void> {
    const over = [...this.#open].filter(([, { admitted }]) => isOver(admitted));
    for (const [life] of over) life.end(new Error(why));
    await Promise.all(over.map(([, { done }]) => done));
  }

  #take(connection: EgressConnection, direct: DirectPlace | undefined): void {
    const life = new Lifetime(this.#limits.idle);
    life.onEnd(() => cut(connection));
    const done = Promise.resolve()
      .then(() => this.#serve(connection, life, served, direct))
      .catch(() => undefined)
      .finally(() => {
        life.end();
        this.#open.delete(life);
      });
    const served: Served = { done };
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

  async #serve(
    connection: EgressConnection,
    life: Lifetime,
    served: Served,
    direct: DirectPlace | undefined,
  ): Promise<void> {
    const client = new ClientStream(connection, life);
    const late = (): Error => new Refusal(408, "the head of the request took too long");
    let manner = direct === undefined ? proxyManner(client) : SILENT_MANNER;
    let passing: Passing | undefined;
    let method: string | undefined;
    try {
      if (direct !== undefined) manner = await life.within(directManner(client, direct), this.#limits.head, late);
      const asked = await life.within(manner.read(), this.#limits.head, late);
      if (asked === undefined) return;
      const { head, target } = asked;
      if (target.kind === "request") method = head?.method;
      const rule = await this.#admit(target, head?.method ?? "CONNECT", life);
      // They may have changed just now, before it was known what to cut.
      if (rule !== ASKED && !this.#policy.isAllowed(target.host, target.port))
        throw new Error("the rules have changed");
      const { established } = manner;
      const { host, port } = target;
      const route = this.#route;
      const connect: Exchange["dial"] = async () => {
        const reach = this.#policy.reachOf(host, port);
        const { socket, address } = await dial({ host, port, reach }, route, life);
        served.admitted?.reaches(reach, address);
        return socket;
      };
      passing = this.#traffic?.open({ host, port, rule, ...(method !== undefined && { method }) }, () => client.bytes);
      const exchange: Exchange = { client, life, route, dial: connect, established, report: this.#report, passing };
      const inspection = target.kind === "tunnel" && this.#inspector?.inspectionOf(target.host, target.port);
      const isPlain = target.kind === "tunnel" && this.#policy.isPlain(target.host, target.port);
      const admitted = new Admitted(target, { isPlain, isInspected: Boolean(inspection) });
      served.admitted = admitted;
      if (inspection) {
        const check = (request: RequestFacts): Promise<void> => this.#admitRequest(inspection, target, request, life);
        const begin = (request: RequestFacts): (() => void) => admitted.begin(request);
        await inspect(exchange, target, { ...inspection, check, begin, limits: this.#limits });
      } else if (head === undefined || target.kind === "tunnel") {
        this.#assertNotInspected(target);
        await tunnel(exchange, target, { isPlain, timeout: this.#limits.head });
      } else {
        const check = (request: RequestFacts): void => this.#policy.checkRequest(host, port, request);
        const facts = { method: head.method, path: target.path, headers: head.headers };
        await this.#admitRequest({ check }, target, facts, life);
        admitted.begin(facts);
        await forward(exchange, head, target, {
          via: { dial: connect },
          usualPort: 80,
          timeout: this.#limits.response,
          patience: this.#limits.head,
        });
        await finish(client, life, this.#limits.linger);
      }
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (error.blocked) this.#report(error.blocked, method);
      await client.write(manner.refuse(error));
      await finish(client, life, this.#limits.linger);
    } finally {
      passing?.close();
    }
  }

  /** Rules that came after the authority of the sandbox was made, and need it, let nothing through. */
  #assertNotInspected({ host, port }: RequestTarget): void {
    if (!this.#policy.isInspected(host, port)) return;
    const message = `the requests to ${hostInUrl(host)}:${port} can't be checked: the sandbox was opened without rules for it`;
    throw new Refusal(403, message, blockedHost(host, port, "request_not_allowed"));
  }

  /** Before anything is resolved: no resolver gets a name that is not allowed. Gives what allowed it. */
  async #admit({ host, port, kind, path }: RequestTarget, method: string, life: Lifetime): Promise<string> {
    const isAllowed = (): boolean => this.#policy.isAllowed(host, port);
    if (isAllowed()) return this.#policy.ruleFor?.(host, port) ?? "network.allow";
    const denied = this.#policy.deniedBy(host, port);
    const place = `${hostInUrl(host)}:${port}`;
    if (denied !== undefined) {
      const message = `the rule ${denied} of this sandbox does not allow ${place}`;
      throw new Refusal(403, message, blockedHost(host, port, "denied"));
    }
    const request = kind === "tunnel" ? {} : { method, path: shownPath(path) };
    const entry = entryFor(host, port);
    const blocked: BlockedRequest = { host, port, reason: "not_allowed", ...request };
    const answer = await this.#ask({ request: blocked, entry, most: entry, isAllowed }, life);
    if (answer !== "deny") return ASKED;
    const end = entry === undefined ? endFor(host, port) : "";
    const message = `the rule network.allow of this sandbox does not allow ${place}${end}`;
    throw new Refusal(403, message, blockedHost(host, port, "not_allowed"), entry);
  }

  async #admitRequest(
    { check }: Pick<Inspection, "check">,
    { host, port }: RequestTarget,
    request: RequestFacts,
    life: Lifetime,
  ): Promise<void> {
    const refusal = await refusalOf(check, request);
    if (refusal === undefined) return;
    // What is denied, or not clear, is no question.
    if (!(refusal instanceof Refusal) || refusal.blocked?.reason !== "request_not_allowed") throw refusal;
    const { method, path } = request;
    const blocked: BlockedRequest = { host, port, reason: "request_not_allowed", method, path: shownPath(path) };
    const isPrivate = this.#policy.reachOf(host, port).scopes.every((scope) => scope === "private");
    const entry = ruleFor({ host, port, isPrivate }, request);
    const most = isPrivate ? privateRuleFor(host, port) : entryFor(host, port);
    const isAllowed = async (): Promise<boolean> => (await refusalOf(check, request)) === undefined;
    if ((await this.#ask({ request: blocked, entry, most, isAllowed }, life)) === "deny") throw refusal;
  }

  async #ask(question: OpenQuestion, life: Lifetime): Promise<BlockedAnswer> {
    return this.#questions === undefined ? "deny" : await life.during(this.#questions.put(question));
  }
}

function endFor(host: string, port: number): string {
  // Nobody is asked about it, but a flag of the user's own opens it.
  const rule = host === HOST_LOOPBACK ? `${HOST_LOOPBACK}:${port}` : privateRuleFor(host, port);
  return rule === undefined ? ", and it cannot be allowed" : `\nto allow it: --network 'allow=${entryText(rule)}'`;
}

async function refusalOf(check: Inspection["check"], request: RequestFacts): Promise<unknown> {
  try {
    await check(request);
    return undefined;
  } catch (error) {
    return error;
  }
}

/** A path as people are shown it. A query may have secrets. */
function shownPath(path: string): string {
  return (path.split("?", 1)[0] ?? "").slice(0, 1024).replace(/[^\x21-\x7e]/g, "?");
}

function cut(connection: EgressConnection): void {
  try {
    connection.destroy();
  } catch {
    // It is closed one way or the other.
  }
}
