import { randomBytes } from "node:crypto";
import type { SandboxError } from "../../../contracts/errors.js";
import { RelayPieces } from "./relay-pieces.js";
import type { RelayPort } from "./relay-stream.js";

/** One connection to a guest, which may break at any time. */
export interface LinkConnection {
  /** Ends with the connection; throws the reason if there is one. */
  readonly input: AsyncIterable<Uint8Array>;
  write(bytes: Uint8Array): void;
  /** Passes on what was written, and closes. Resolves when the other side has ended. */
  end(): Promise<void>;
  destroy(): void;
  ref(): void;
  unref(): void;
}

/** How connections to one guest are made. */
export interface LinkOptions {
  /** Makes another connection. */
  connect(signal: AbortSignal): Promise<LinkConnection>;
  /** The final error if another try is useless; undefined otherwise. */
  verdict(error: unknown): SandboxError | undefined;
  /** Whether a warm guest that we are the first to reach keeps the files when the lease is over. */
  readonly keeps?: boolean;
}

/** A way to a guest by connections in both directions that may break. */
export interface Link extends RelayPort<Uint8Array> {
  /** Has the guest end everything. Resolves once it has, or can't be reached. */
  finish(): Promise<void>;
}

const TOKEN_BYTES = 32;
const HEARTBEAT = 5_000;
/** Bytes of letters that the guest has not confirmed, at which no more are sent. */
const WINDOW = 4 << 20;
/** The numbers of what is no letter: a sign of life, and the end. */
const NO_LETTER = 0xffff_ffff;
const LAST_LETTER = 0xffff_fffe;
/** In the position of a greeting: the guest has greeted us before, so one that has started over since must not take our letters. */
const CONTINUES = 1n << 63n;
/** The same for a guest that is to start over instead of ending. */
const KEEPS = 1n << 62n;

/** Reaches a guest through connections; see `guest/channel/link.c`. Letters stay here until the guest confirms them, so that none is lost. */
export function createLink({ connect, verdict, keeps = false }: LinkOptions): Link {
  // Known to the guest from the first connection on, before anything else runs there.
  const token = randomBytes(TOKEN_BYTES);
  const letters = new UnconfirmedLetters();
  let connection: LinkConnection | undefined;
  let isReady = false;
  let isBusy = true;
  const hold = (): void => (isBusy ? connection?.ref() : connection?.unref());
  const decoder = new RelayPieces((next) => {
    letters.confirm(next);
    if (isReady) return;
    isReady = true;
    for (const letter of letters.all()) connection?.write(letter);
  });
  return {
    decoder,
    staysOpen: true,
    letterBytes: 256 << 10,
    verdict,
    onBusy(busy) {
      isBusy = busy;
      hold();
    },
    async post(number, letter, signal) {
      await letters.room(signal);
      const numbered = Buffer.concat([numberBytes(number), letter]);
      letters.add(number, numbered);
      if (isReady) connection?.write(numbered);
    },
    async *listen(_how, position, signal) {
      const made = await connect(signal);
      const beat = setInterval(() => {
        if (isReady) made.write(wordOf(NO_LETTER, decoder.position));
      }, HEARTBEAT).unref();
      const onAbort = (): void => made.destroy();
      signal.addEventListener("abort", onAbort, { once: true });
      try {
        signal.throwIfAborted();
        connection = made;
        isReady = false;
        hold();
        const wasGreeted = decoder.environment !== undefined;
        const marks = (wasGreeted ? CONTINUES : 0n) | (keeps ? KEEPS : 0n);
        made.write(Buffer.concat([token, positionBytes(position, marks)]));
        yield* made.input;
      } finally {
        clearInterval(beat);
        signal.removeEventListener("abort", onAbort);
        if (connection === made) connection = undefined;
        isReady = false;
        made.destroy();
      }
    },
    async finish() {
      const last = connection;
      if (last === undefined || !isReady) return;
      last.write(wordOf(LAST_LETTER, decoder.position));
      await last.end();
    },
  };
}

/** Letters by their numbers, in order. */
class UnconfirmedLetters {
  readonly #letters: Map<number, Buffer> = new Map();
  #bytes = 0;
  #waiting: (() => void)[] = [];

  add(number: number, letter: Buffer): void {
    this.#letters.set(number, letter);
    this.#bytes += letter.length;
  }

  /** The guest has all letters before this one. */
  confirm(next: number): void {
    for (const [number, letter] of this.#letters) {
      if (number >= next) break;
      this.#letters.delete(number);
      this.#bytes -= letter.length;
    }
    if (this.#bytes >= WINDOW) return;
    for (const go of this.#waiting) go();
    this.#waiting = [];
  }

  all(): Iterable<Buffer> {
    return this.#letters.values();
  }

  /** Resolves once another letter may be added; rejects when the signal is aborted. */
  async room(signal: AbortSignal): Promise<void> {
    while (this.#bytes >= WINDOW) {
      signal.throwIfAborted();
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
    }
  }
}

/** What has the form of a letter, but no content and no number. */
function wordOf(number: number, position: number): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(8);
  return Buffer.concat([numberBytes(number), length, positionBytes(position)]);
}

function numberBytes(number: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(number);
  return bytes;
}

function positionBytes(position: number, mark: bigint = 0n): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(position) | mark);
  return bytes;
}
