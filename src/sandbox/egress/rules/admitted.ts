import type { EgressPolicy, Reach, RequestFacts } from "../policy.js";
import type { RequestTarget } from "../request-target.js";

/** What a connection was let through to, and what it is used for. */
export class Admitted {
  readonly #host: string;
  readonly #port: number;
  readonly #isPlain: boolean;
  readonly #isInspected: boolean;
  readonly #requests = new Set<RequestFacts>();
  readonly #scopes = new Set<Reach["scopes"][number]>();
  readonly #addresses = new Set<string>();

  constructor(
    { host, port }: Pick<RequestTarget, "host" | "port">,
    { isPlain, isInspected }: { isPlain: boolean; isInspected: boolean },
  ) {
    this.#host = host;
    this.#port = port;
    this.#isPlain = isPlain;
    this.#isInspected = isInspected;
  }

  /** Remembers a request that may pass, until it is over: with a WebSocket, that is the end of the connection. */
  begin(request: RequestFacts): () => void {
    this.#requests.add(request);
    return () => this.#requests.delete(request);
  }

  /** Remembers where it leads. `address`: undefined where a proxy of the organisation knows. */
  reaches({ scopes }: Reach, address: string | undefined): void {
    for (const scope of scopes) this.#scopes.add(scope);
    if (address !== undefined) this.#addresses.add(address);
  }

  /** Whether it goes to a host whose TLS ends at the proxy, for which this holds. */
  isInspectedFor(holds: (host: string, port: number) => boolean): boolean {
    return this.#isInspected && holds(this.#host, this.#port);
  }

  /** Whether rules allow all of it: the host, where that leads, how it is served, and each request that is under way. */
  stillPasses(policy: EgressPolicy, isInspected: (host: string, port: number) => boolean): boolean {
    const [host, port] = [this.#host, this.#port];
    if (!policy.isAllowed(host, port) || (this.#isPlain && !policy.isPlain(host, port))) return false;
    if (this.#isInspected !== isInspected(host, port)) return false;
    const { scopes, isDenied } = policy.reachOf(host, port);
    if (![...this.#scopes].every((scope) => scopes.includes(scope)) || [...this.#addresses].some(isDenied))
      return false;
    return [...this.#requests].every((request) => isAllowed(policy, host, port, request));
  }
}

function isAllowed(policy: EgressPolicy, host: string, port: number, request: RequestFacts): boolean {
  try {
    policy.checkRequest(host, port, request);
    return true;
  } catch {
    return false;
  }
}
