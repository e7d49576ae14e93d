/** Bytes to find, and what takes their place. */
export interface BytePattern {
  readonly text: Buffer;
  readonly label: Buffer;
}

/** Where a pattern was found. */
export interface Occurrence<P> {
  readonly start: number;
  readonly pattern: P;
}

/** Two bytes are looked at together. */
const BLOCK = 2;
const BLOCKS = 1 << 16;
const MOST_SHIFT = 255;

/**
 * Looks for many patterns at once (Wu and Manber, 1994), in a time that hardly depends on how many there are: from the two bytes at the end of a window that is
 * as long as the shortest pattern it knows how far the next possible match is. The shortest must have two bytes.
 */
export class ByteSearch {
  readonly #width: number;
  readonly #shifts: Uint8Array;
  /** The patterns whose window ends with these two bytes, the longest first. */
  readonly #ending = new Map<number, BytePattern[]>();
  /** By their first byte. */
  readonly #starting: BytePattern[][] = Array.from({ length: 256 }, () => []);
  readonly #longest: number;

  constructor(patterns: readonly BytePattern[]) {
    const sorted = [...patterns].sort((one, other) => other.text.length - one.text.length);
    this.#longest = sorted[0]?.text.length ?? 0;
    this.#width = Math.min(sorted.at(-1)?.text.length ?? BLOCK, MOST_SHIFT);
    this.#shifts = new Uint8Array(BLOCKS).fill(this.#width - BLOCK + 1);
    for (const pattern of sorted) {
      const { text } = pattern;
      for (let at = BLOCK - 1; at < this.#width; at++) {
        const block = blockAt(text, at);
        this.#shifts[block] = Math.min(this.#shifts[block] ?? 0, this.#width - 1 - at);
      }
      const block = blockAt(text, this.#width - 1);
      const ending = this.#ending.get(block);
      if (ending === undefined) this.#ending.set(block, [pattern]);
      else ending.push(pattern);
      this.#starting[text[0] ?? 0]?.push(pattern);
    }
  }

  /** All matches that start before `limit`, overlapping ones too, by position and then the longest first. */
  occurrences(text: Buffer, limit: number): Occurrence<BytePattern>[] {
    const found: Occurrence<BytePattern>[] = [];
    const [shifts, width] = [this.#shifts, this.#width];
    const end = Math.min(text.length, limit + width - 1);
    for (let at = width - 1; at < end; ) {
      const block = ((text[at - 1] as number) << 8) | (text[at] as number);
      const shift = shifts[block] as number;
      at += shift;
      if (shift > 0) continue;
      const start = at - width + 1;
      for (const pattern of this.#ending.get(block) ?? []) {
        if (isAt(text, start, pattern.text)) found.push({ start, pattern });
      }
      at++;
    }
    return found;
  }

  /** The first position at which a pattern may start that later bytes complete. */
  firstUncertain(text: Buffer): number {
    for (let at = Math.max(0, text.length - this.#longest + 1); at < text.length; at++) {
      const rest = text.length - at;
      const candidates = this.#starting[text[at] as number];
      const mayStart = ({ text: wanted }: BytePattern): boolean =>
        wanted.length > rest && text.compare(wanted, 0, rest, at, text.length) === 0;
      if (candidates?.some(mayStart)) return at;
    }
    return text.length;
  }
}

function blockAt(text: Buffer, last: number): number {
  return ((text[last - 1] ?? 0) << 8) | (text[last] ?? 0);
}

function isAt(text: Buffer, start: number, wanted: Buffer): boolean {
  if (text[start] !== wanted[0] || start + wanted.length > text.length) return false;
  return text.compare(wanted, 0, wanted.length, start, start + wanted.length) === 0;
}
