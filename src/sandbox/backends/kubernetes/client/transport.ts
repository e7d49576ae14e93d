import {
  Agent,
  type ClientRequest,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
} from "node:http";
import { request as httpsRequest, Agent as SecureAgent } from "node:https";
import { Credentials, type Identity } from "./credentials.js";
import type { ClusterAccess } from "./kubeconfig.js";

const USER_AGENT = "glovebox";
const IDLE_CONNECTIONS = 8;

/** A program that prints credentials may take longer than a request; it goes on for the next one. */
async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  let onAbort = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** One HTTP request to the API server. */
export interface RawRequest {
  readonly method: string;
  /** With the query, relative to the server's address. */
  readonly path: string;
  readonly body?: string | undefined;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly signal: AbortSignal;
  /** A connection that no other request has used. An idle one may be cut just when it is used, and some requests must not be made twice. */
  readonly isFresh?: boolean;
}

/** The two ways to connect as one identity. */
interface Agents {
  readonly identity: Identity;
  readonly shared: Agent;
  readonly fresh: Agent;
}

/** Makes requests to one API server, with our credentials. */
export class Transport {
  readonly #access: ClusterAccess;
  readonly #credentials: Credentials;
  #agents: Agents | undefined;

  constructor(access: ClusterAccess) {
    this.#access = access;
    this.#credentials = new Credentials(access.user);
  }

  /** Starts a request. The caller listens to its events and ends it. */
  async start(raw: RawRequest): Promise<{ request: ClientRequest; identity: Identity }> {
    const identity = await untilAborted(this.#credentials.current(), raw.signal);
    const { shared, fresh } = this.#agentsOf(identity);
    const { server } = this.#access;
    const { method, body, signal } = raw;
    const options: RequestOptions = {
      host: server.hostname.replace(/^\[|\]$/g, ""),
      port: server.port === "" ? undefined : Number(server.port),
      path: server.pathname.replace(/\/$/, "") + raw.path,
      method,
      signal,
      agent: raw.isFresh === true ? fresh : shared,
      headers: {
        "User-Agent": USER_AGENT,
        // A DELETE with a body has no length unless it is given, and its body would be taken for the next request.
        ...(body !== undefined && { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) }),
        ...(identity.headers as Record<string, string | string[]>),
        ...raw.headers,
      },
    };
    return { request: server.protocol === "https:" ? httpsRequest(options) : httpRequest(options), identity };
  }

  /** Makes a request and returns the head of its answer. */
  async send(raw: RawRequest): Promise<{ answer: IncomingMessage; identity: Identity }> {
    const { request, identity } = await this.start(raw);
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      request.once("response", resolve);
      request.on("error", (error) => reject(Object.assign(error, { wasReused: request.reusedSocket })));
      request.end(raw.body);
    });
    return { answer, identity };
  }

  /** The server doesn't accept an identity. Returns false if there can be no other. */
  renew(refused: Identity): boolean {
    return this.#credentials.renew(refused);
  }

  /** Closes idle connections. */
  close(): void {
    // Only the shared one keeps connections. To destroy an agent would also end those in use.
    const idle = this.#agents?.shared;
    if (idle === undefined) return;
    idle.maxFreeSockets = 0;
    for (const socket of Object.values(idle.freeSockets).flat()) socket?.destroy();
    this.#agents = undefined;
  }

  #agentsOf(identity: Identity): Agents {
    const current = this.#agents;
    if (current?.identity === identity) return current;
    if (current !== undefined && current.identity.cert === identity.cert && current.identity.key === identity.key) {
      this.#agents = { ...current, identity };
      return this.#agents;
    }
    // Connections in use go on with the old certificate until they end.
    this.close();
    this.#agents = { identity, shared: this.#agent(identity, true), fresh: this.#agent(identity, false) };
    return this.#agents;
  }

  #agent({ cert, key }: Identity, keepAlive: boolean): Agent {
    const { server, ca, isVerified, serverName } = this.#access;
    const settings = keepAlive ? { keepAlive, maxFreeSockets: IDLE_CONNECTIONS } : { keepAlive };
    if (server.protocol === "http:") return new Agent(settings);
    return new SecureAgent({
      ...settings,
      rejectUnauthorized: isVerified,
      ...(ca !== undefined && { ca }),
      ...(cert !== undefined && { cert }),
      ...(key !== undefined && { key }),
      ...(serverName !== undefined && { servername: serverName }),
    });
  }
}
