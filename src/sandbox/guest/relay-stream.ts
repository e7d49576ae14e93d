import { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { SandboxError } from "../../../contracts/errors.js";
import { tampered } from "./frames.js";
import type { RelayDecoder } from "./relay-decoder.js";

/**
 * What a service must offer so that a guest can be reached without a channel that lasts: through letters and text (`guest/channel/relay.c`), or through
 * connections that may break (`guest/channel/link.c`).
 */
export interface RelayPort<Said = string> {
  /** Parses what `listen` yields. */
  readonly decoder: RelayDecoder<Said>;
  /** Whether it listens although no call is running, so that the guest knows that we are alive. Default: it pauses. */
  readonly staysOpen?: boolean;
  /** How many bytes a letter may have. Default 4 MiB. */
  readonly letterBytes?: number;
  /** Writes the letter with this number. It may be written again. */
  post(number: number, letter: Uint8Array, signal: AbortSignal): Promise<void>;
  /** Starts or joins the relay and yields what it sends from this position on, until it is cut off. */
  listen(how: "start" | "join", position: number, signal: AbortSignal): AsyncIterable<Said>;
  /** Reads a file that the relay has left next to the letters. Absent: it leaves none. */
  fetch?(name: string, signal: AbortSignal): Promise<Uint8Array>;
  /** The final error if another try is useless; undefined otherwise. */
  verdict(error: unknown): SandboxError | undefined;
  /** How many milliseconds the service asked to wait; undefined if it did not. */
  pause?(error: unknown): number | undefined;
  /** Called when the guest gets something to do, and when it has nothing left to do. */
  onBusy?(busy: boolean): void;
}

/** A relay that prints says something every ten seconds; after this silence the connection counts as dead. */
const SILENCE = 35_000;
/** After so long without a call nobody listens; the next call listens again. */
const IDLE = 5_000;
/** What was received is confirmed in steps of this size, unless a letter has done so: the relay buffers 8 MiB. */
const CONFIRM_STEP = 3 << 20;
const MAX_LETTER = 4 << 20;
const MAX_TRIES = 8;
const HEAD_BYTES = 12;

/** How long a stream waits for its relay. */
export interface RelayPatience {
  /** The milliseconds of silence after which a connection counts as dead. */
  readonly silence?: number;
  /** How many milliseconds to go on trying without hearing anything. Default: eight tries. */
  readonly patience?: number;
}

/** The bytes to and from a resident guest, carried by letters and by what relays send that may be cut off. */
export class RelayStream<Said = string> extends Duplex {
  readonly window: number = 4 << 20;
  readonly #port: RelayPort<Said>;
  readonly #silence: number;
  readonly #patience: number | undefined;
  readonly #letterBytes: number;
  #letters = 0;
  #confirmed = 0;
  readonly #ending = new AbortController();
  #posting: AbortController | undefined;
  #listening: AbortController | undefined;
  #isHeld = true;
  #idle: NodeJS.Timeout | undefined;
  #wake: (() => void) | undefined;
  #room: (() => void) | undefined;

  constructor(port: RelayPort<Said>, { silence = SILENCE, patience }: RelayPatience = {}) {
    const letterBytes = port.letterBytes ?? MAX_LETTER;
    super({ writableHighWaterMark: 2 * letterBytes, readableHighWaterMark: 64 << 10, autoDestroy: true });
    this.#port = port;
    this.#silence = silence;
    this.#patience = patience;
    this.#letterBytes = letterBytes;
    port.onBusy?.(true);
    this.#receive().catch((error: unknown) => this.destroy(lost(error)));
  }

  /** What the relay reported about its environment, once it has. */
  get environment(): Readonly<Record<string, string>> {
    return this.#port.decoder.environment ?? {};
  }

  ref(): void {
    clearTimeout(this.#idle);
    if (this.#isHeld) return;
    this.#isHeld = true;
    this.#port.onBusy?.(true);
    this.#wake?.();
  }

  unref(): void {
    if (!this.#isHeld || this.destroyed) return;
    this.#isHeld = false;
    this.#port.onBusy?.(false);
    clearTimeout(this.#idle);
    if (this.#port.staysOpen !== true) this.#idle = setTimeout(() => this.#listening?.abort(), IDLE).unref();
  }

  override _read(): void {
    this.#room?.();
  }

  /** Everything that is sent at the same time goes into one letter. */
  override write(chunk: Uint8Array): boolean {
    if (this.writableCorked === 0) {
      this.cork();
      setImmediate(() => this.uncork());
    }
    return super.write(chunk);
  }

  override _writev(chunks: readonly { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    const bytes = Buffer.concat(chunks.map(({ chunk }) => chunk));
    this.#send(bytes).then(
      () => done(),
      (error: unknown) => done(error instanceof Error ? error : lost(error)),
    );
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    clearTimeout(this.#idle);
    this.#ending.abort();
    this.#posting?.abort();
    this.#listening?.abort();
    this.#wake?.();
    this.#room?.();
    if (this.#isHeld) this.#port.onBusy?.(false);
    this.#isHeld = false;
    done(error);
  }

  /** Letters are sent in order; each may be written more than once, and is read once. */
  async #send(bytes: Buffer): Promise<void> {
    let at = 0;
    do {
      const part = bytes.subarray(at, at + this.#letterBytes);
      at += part.length;
      const letter = Buffer.alloc(HEAD_BYTES + part.length);
      const position = this.#port.decoder.position;
      letter.writeUInt32LE(8 + part.length, 0);
      letter.writeBigUInt64LE(BigInt(position), 4);
      letter.set(part, HEAD_BYTES);
      await this.#persist(() => {
        this.#posting = new AbortController();
        return this.#port.post(this.#letters, letter, this.#posting.signal);
      });
      this.#letters += 1;
      this.#confirmed = position;
    } while (at < bytes.length);
  }

  async #persist(work: () => Promise<void>): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        await work();
        return;
      } catch (error) {
        const final = this.destroyed ? lost(error) : this.#verdict(error);
        if (final !== undefined) throw final;
        const pause = this.#port.pause?.(error);
        // Being asked to wait is not a failure. How long a call may wait is up to its own deadline.
        if (pause !== undefined) tries -= 1;
        else if (tries === MAX_TRIES) throw lost(error);
        await this.#rest(pause ?? pauseAfter(tries));
        if (this.destroyed) throw lost(error);
      }
    }
  }

  /** Waits, but not beyond the end of the stream. Only a running call keeps the process alive for it. */
  async #rest(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#ending.signal, ref: this.#isHeld }).catch(() => undefined);
  }

  /**
   * Once there was a guest, losing it leaves the outcome of its calls unknown. Credentials that are no longer valid are reported as such anyway:
   * only the user can fix them.
   */
  #verdict(error: unknown): SandboxError | undefined {
    const final = this.#port.verdict(error);
    if (final === undefined || this.#port.decoder.environment === undefined) return final;
    if (final.code === "tampered" || final.code === "unauthenticated") return final;
    return new SandboxError("backend_lost", final.message, { cause: final, hint: final.hint });
  }

  /** The error when there are no more tries. */
  #over(failure: unknown): SandboxError {
    const error = lost(failure);
    if (this.#port.decoder.environment === undefined || error.code === "backend_lost") return error;
    return new SandboxError("backend_lost", error.message, { cause: error, hint: error.hint });
  }

  async #receive(): Promise<void> {
    let heardAt = performance.now();
    for (let tries = 0; !this.destroyed; ) {
      if (!this.#listens) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        tries = 0;
        continue;
      }
      const before = this.#port.decoder.heard;
      const failure = await this.#listen();
      if (this.destroyed) return;
      if (this.#port.decoder.hasEnded) throw lost();
      const final = failure === undefined ? undefined : this.#verdict(failure);
      if (final !== undefined && this.#listens) throw final;
      const pause = failure === undefined ? undefined : this.#port.pause?.(failure);
      if (pause !== undefined) {
        await this.#rest(pause);
        continue;
      }
      tries = this.#port.decoder.heard > before ? 0 : tries + 1;
      if (tries === 0) heardAt = performance.now();
      const isOver = this.#patience === undefined ? tries >= MAX_TRIES : performance.now() - heardAt > this.#patience;
      if (isOver) throw this.#over(failure);
      if (this.#listens && tries > 0) await this.#rest(pauseAfter(tries));
    }
  }

  get #listens(): boolean {
    return this.#isHeld || this.#port.staysOpen === true;
  }

  /** Processes what one relay sends; returns why it ended, if there is a reason. */
  async #listen(): Promise<unknown> {
    const listening = new AbortController();
    this.#listening = listening;
    const silence = setTimeout(() => listening.abort(), this.#silence).unref();
    try {
      const how = this.#port.decoder.environment === undefined ? "start" : "join";
      this.#port.decoder.restart();
      for await (const said of this.#port.listen(how, this.#port.decoder.position, listening.signal)) {
        silence.refresh();
        const pieces = this.#port.decoder.push(said, (name) => this.#fetch(name, listening.signal));
        for await (const bytes of pieces) await this.#deliver(bytes);
        silence.refresh();
        if (this.#port.decoder.hasEnded || this.destroyed) return undefined;
      }
      return undefined;
    } catch (error) {
      return error;
    } finally {
      clearTimeout(silence);
      listening.abort();
    }
  }

  async #fetch(name: string, signal: AbortSignal): Promise<Uint8Array> {
    const { fetch } = this.#port;
    if (fetch === undefined) throw tampered("the name of a file");
    return await fetch(name, signal);
  }

  async #deliver(bytes: Uint8Array): Promise<void> {
    const hasRoom = this.push(bytes);
    if (this.#port.decoder.position - this.#confirmed >= CONFIRM_STEP && this.writableLength === 0)
      this.write(Buffer.alloc(0));
    if (hasRoom || this.destroyed) return;
    await new Promise<void>((resolve) => {
      this.#room = resolve;
    });
  }
}

function pauseAfter(tries: number): number {
  return Math.min(100 * 2 ** tries, 5_000);
}

function lost(cause?: unknown): SandboxError {
  if (cause instanceof SandboxError) return cause;
  return new SandboxError("backend_lost", "the sandbox's guest can't be reached any more", { cause });
}
