import { type ClientHttp2Session, connect } from "node:http2";
import { hostInUrl } from "../../host-name.js";
import type { Lifetime } from "../../lifetime.js";
import type { RequestTarget } from "../../request-target.js";
import { connectOrigin, type OriginRoute } from "../connect-origin.js";

/** Bytes of a stream that an origin may send before they are read. */
const WINDOW = 256 << 10;

/** The HTTP/2 connection to one origin for the streams of one program's connection; another one when it is over. */
export class OriginSession {
  readonly #target: RequestTarget;
  readonly #route: OriginRoute;
  readonly #life: Lifetime;
  #current: Promise<ClientHttp2Session> | undefined;

  constructor(target: RequestTarget, route: OriginRoute, life: Lifetime) {
    this.#target = target;
    this.#route = route;
    this.#life = life;
  }

  /** A session that takes requests. */
  async open(): Promise<ClientHttp2Session> {
    const current = this.#current;
    if (current !== undefined) {
      const session = await current;
      if (!session.closed && !session.destroyed) return session;
    }
    // Whoever waited for the same session finds the next one made.
    if (this.#current === current) this.#current = this.#connect();
    return await (this.#current ?? this.open());
  }

  async #connect(): Promise<ClientHttp2Session> {
    try {
      const { host, port } = this.#target;
      const socket = await connectOrigin(this.#target, this.#route, this.#life, "h2");
      const session = connect(`https://${hostInUrl(host)}:${port}`, {
        createConnection: () => socket,
        settings: { enablePush: false, initialWindowSize: WINDOW },
      });
      session.on("error", () => undefined); // its streams fail
      session.once("connect", () => session.destroyed || session.setLocalWindowSize(WINDOW * 4));
      session.once(
        "close",
        this.#life.onEnd(() => session.destroy()),
      );
      return session;
    } catch (error) {
      this.#current = undefined;
      throw error;
    }
  }
}
