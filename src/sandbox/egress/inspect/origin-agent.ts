import { Agent } from "node:http";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import type { Lifetime } from "../lifetime.js";
import type { RequestTarget } from "../request-target.js";
import { connectOrigin, type OriginRoute } from "./connect-origin.js";

type Created = (error: Error | null, socket: Duplex) => void;

/** Keeps connections to one origin for the requests of one program's connection. */
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
    return await connectOrigin(this.#target, this.#route, this.#life, "http/1.1");
  }
}
