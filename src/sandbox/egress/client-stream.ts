import type { EgressConnection } from "./connection.js";
import type { Lifetime } from "./lifetime.js";

/** The proxy's side of one connection: reads, with a way to give bytes back, and writes, until its lifetime ends. */
export class ClientStream {
  readonly #connection: EgressConnection;
  readonly #life: Lifetime;
  readonly #source: AsyncIterator<Uint8Array>;
  /** A read that nobody waits for any more; the next reader takes it over. */
  #pending: Promise<IteratorResult<Uint8Array, unknown>> | undefined;
  #returned: Buffer | undefined;
  /** Bytes that the program has sent, and got. */
  readonly bytes = { sent: 0, received: 0 };

  constructor(connection: EgressConnection, life: Lifetime) {
    this.#connection = connection;
    this.#life = life;
    this.#source = connection.input[Symbol.asyncIterator]();
  }

  /** At least one byte; undefined at the end. */
  async read(): Promise<Buffer | undefined> {
    for (;;) {
      const returned = this.#returned;
      this.#returned = undefined;
      if (returned !== undefined && returned.length > 0) return returned;
      const pending = this.#pending ?? this.#source.next();
      this.#pending = pending;
      const { done, value } = await this.#life.during(pending);
      if (this.#pending === pending) this.#pending = undefined;
      if (done) return undefined;
      this.#life.touch();
      this.bytes.sent += value.length;
      if (value.length > 0) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    }
  }

  /** Waits for what the program sends next, which stays unread. Gives whether that is the end of its half. */
  async ended(): Promise<boolean> {
    if (this.#returned !== undefined && this.#returned.length > 0) return false;
    this.#pending ??= this.#source.next();
    return (await this.#life.during(this.#pending)).done === true;
  }

  /** Gives back what was read too far. */
  unread(bytes: Buffer): void {
    this.#returned = this.#returned === undefined ? bytes : Buffer.concat([bytes, this.#returned]);
  }

  /** Resolves once there is room for more. */
  async write(chunk: Uint8Array): Promise<void> {
    await this.#life.during(this.#connection.write(chunk));
    this.bytes.received += chunk.length;
    this.#life.touch();
  }

  async end(): Promise<void> {
    await this.#life.during(this.#connection.end());
  }
}
