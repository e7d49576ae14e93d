import { Agent } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { connect, type TLSSocket } from "node:tls";
import { hostInUrl } from "../host-name.js";
import type { Lifetime } from "../lifetime.js";
import { Refusal } from "../refusal.js";
import type { RequestTarget } from "../request-target.js";

/** How to reach an origin by TLS. */
export interface OriginRoute {
  /** Opens a connection that the rules allow. */
  dial(): Promise<Socket>;
  /** The authorities that its certificate may come from, as PEM. Undefined: those of Node. */
  ca: readonly string[] | undefined;
  /** Milliseconds for the handshake. */
  timeout: number;
}

type Created = (error: Error | null, socket: Duplex) => void;

/** Keeps connections to one origin for the requests of one program's connection. A certificate is verified before the first byte of a request. */
export class OriginAgent extends Agent {
  readonly #target: RequestTarget;
  readonly #route: OriginRoute;
  readonly #life: Lifetime;

  constructor(target: RequestTarget, route: OriginRoute, life: Lifetime) {
    super({ keepAlive: true, maxSockets: 1 });
    this.#target = target;
    this.#route = route;
    this.#life = life;
    life.onEnd(() => this.destroy());
  }

  override createConnection(_options: unknown, created?: Created): undefined {
    this.#connect().then(
      (socket) => created?.(null, socket),
      // Node's types want a socket in any case.
      (error: Error) => (created as ((error: Error) => void) | undefined)?.(error),
    );
  }

  async #connect(): Promise<TLSSocket> {
    const { host, port } = this.#target;
    const plain = await this.#route.dial();
    const socket = connect({
      socket: plain,
      servername: host,
      ALPNProtocols: ["http/1.1"],
      ...(this.#route.ca && { ca: [...this.#route.ca] }),
    });
    const verified = new Promise<void>((resolve, reject) => {
      socket.once("secureConnect", resolve);
      socket.once("error", (error: NodeJS.ErrnoException) => reject(unverified(host, port, error)));
      socket.once("close", () => reject(unverified(host, port, undefined)));
    });
    try {
      const late = (): Error => new Refusal(504, `the TLS handshake with ${hostInUrl(host)}:${port} took too long`);
      await this.#life.within(verified, this.#route.timeout, late);
    } catch (error) {
      socket.destroy();
      throw error;
    }
    socket.on("error", () => undefined); // the request fails
    // Half of it would stay open, and the next request would be sent there and never be answered.
    socket.once("end", () => socket.destroy());
    return socket;
  }
}

function unverified(host: string, port: number, error: NodeJS.ErrnoException | undefined): Refusal {
  return new Refusal(
    502,
    `no verified TLS connection to ${hostInUrl(host)}:${port}: ${error?.code ?? "it was closed"}`,
  );
}
