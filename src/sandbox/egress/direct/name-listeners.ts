import { RESOLVER_ADDRESS } from "./resolver-address.js";

/** Every name without `plain` shares this address in the sandbox: what a program sends first names its host. The resolver is there, too. */
export const SHARED_ADDRESS: number = RESOLVER_ADDRESS.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
/** The first address for a name of its own, and how many there are. */
const FIRST_OWN = SHARED_ADDRESS + 256;
const MAX_OWN = 200;

/** A listener in the sandbox. */
export interface NamePlace {
  address: number;
  port: number;
  /** The only name that leads to the address, if there is one. */
  host: string | undefined;
}

/** How listeners are opened and closed. */
export interface Listening {
  /** Rejects if something else listens there. */
  listen(place: NamePlace, onUse: () => void): Promise<void>;
  stop(place: NamePlace): Promise<void>;
  /** Milliseconds after its last use until a listener is closed. */
  lease: number;
}

/**
 * The listeners for programs that know no proxy. Each is opened when a name that leads to it is looked up, and closed when it was not used for
 * a while: meanwhile no program in the sandbox could listen on the same port of all addresses.
 */
export class NameListeners {
  readonly #listening: Listening;
  readonly #own = new Map<string, number>();
  readonly #open = new Map<string, { opened: Promise<boolean>; timer: NodeJS.Timeout }>();

  constructor(listening: Listening) {
    this.#listening = listening;
  }

  /** The address of a name, once something listens there at one of these ports at least; undefined if nothing can. */
  async addressOf(host: string, ports: readonly number[], hasPlain: boolean): Promise<number | undefined> {
    const own = hasPlain ? this.#ownAddress(host) : undefined;
    const address = own ?? SHARED_ADDRESS;
    const opened = ports.map((port) => this.#use({ address, port, host: own === undefined ? undefined : host }));
    return (await Promise.all(opened)).includes(true) ? address : undefined;
  }

  /** Forgets the listeners; they end with the sandbox. */
  close(): void {
    for (const { timer } of this.#open.values()) clearTimeout(timer);
    this.#open.clear();
  }

  /** Without TLS only the address says which name a program meant. */
  #ownAddress(host: string): number | undefined {
    const known = this.#own.get(host);
    if (known !== undefined || this.#own.size >= MAX_OWN) return known;
    const address = FIRST_OWN + this.#own.size;
    this.#own.set(host, address);
    return address;
  }

  #use(place: NamePlace): Promise<boolean> {
    const key = `${place.address}:${place.port}`;
    const open = this.#open.get(key);
    if (open !== undefined) {
      open.timer.refresh();
      return open.opened;
    }
    const timer = setTimeout(() => {
      this.#open.delete(key);
      this.#listening.stop(place).catch(() => undefined); // the sandbox is gone
    }, this.#listening.lease).unref();
    const opened = this.#listening
      .listen(place, () => timer.refresh())
      .then(
        () => true,
        () => {
          clearTimeout(timer);
          this.#open.delete(key);
          return false;
        },
      );
    this.#open.set(key, { opened, timer });
    return opened;
  }
}
