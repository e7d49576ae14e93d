/** The longest pause after refusals, in milliseconds. */
const LONGEST_PAUSE = 30_000;
const FIRST_PAUSE = 250;
/** The longest one before anything was opened: it is soon known whether that was a mistake. */
const LONGEST_AT_START = 4_000;
const FIRST_SIZE = 32;
/** How long everything may be refused before anything was opened, in milliseconds. */
const AT_START = 20_000;
/** Nobody who wants one waits longer than this before asking again, in milliseconds. */
const NOT_ASKED = 2 * LONGEST_PAUSE;

/**
 * How many sandboxes may be open at once. It grows with each one that opens, fast until the backend first refuses one, then slowly; each round of
 * refusals halves it and makes everybody wait.
 */
export class Window {
  readonly #most: number;
  #size: number;
  #hasRefused = false;
  #hasOpened = false;
  #refusals = 0;
  #lastRefusal = Number.NEGATIVE_INFINITY;
  #refusedAt = Number.NEGATIVE_INFINITY;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  #refusingSince: number | undefined;

  constructor(most: number) {
    this.#most = most;
    this.#size = Math.min(most, FIRST_SIZE);
  }

  get size(): number {
    return Math.max(1, Math.floor(this.#size));
  }

  /** How long nothing may be opened, in milliseconds. */
  pause(now: number = performance.now()): number {
    return Math.max(0, this.#pausedUntil - now);
  }

  /** Whether the backend has refused everything for so long, or from the start: then it is more likely a mistake. */
  isHopeless(patience: number, now: number = performance.now()): boolean {
    const most = this.#hasOpened ? patience : Math.min(patience, AT_START);
    return this.#refusingSince !== undefined && now - this.#refusingSince > most;
  }

  /** A sandbox was opened. */
  opened(): void {
    this.#refusingSince = undefined;
    this.#hasOpened = true;
    this.#refusals = 0;
    this.#size = Math.min(this.#most, this.#size + (this.#hasRefused ? 1 / this.#size : 1));
  }

  /** The backend refused one that it was asked for at `askedAt`. */
  refused(now: number = performance.now(), askedAt: number = now): void {
    // While it is not asked, it refuses nothing: all places may have been taken for hours.
    if (askedAt - this.#lastRefusal > NOT_ASKED) this.#refusingSince = undefined;
    this.#lastRefusal = now;
    this.#refusingSince ??= now;
    this.#hasRefused = true;
    // Those that were asked for before the last round are part of it.
    if (askedAt < this.#refusedAt || now < this.#pausedUntil) return;
    this.#refusedAt = now;
    this.#refusals += 1;
    this.#size = Math.max(1, this.#size / 2);
    const longest = this.#hasOpened ? LONGEST_PAUSE : LONGEST_AT_START;
    const pause = Math.min(longest, FIRST_PAUSE * 2 ** (this.#refusals - 1));
    this.#pausedUntil = now + pause * (0.5 + Math.random() / 2);
  }
}
