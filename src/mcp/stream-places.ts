/** A part of what was shown of a stream, and where it is in the stream. */
interface Span {
  readonly shown: number;
  readonly place: number;
  /** Whether it has as many bytes there: nothing was hidden in it. */
  readonly isSame: boolean;
}

/** Where the bytes that were shown are in the stream itself, in which secrets have another length than what takes their place. */
export class StreamPlaces {
  readonly #spans: Span[] = [];
  #next = 0;

  /** Notes that after `shown` bytes so many more were shown, and that with them the stream was shown up to `place`. */
  add(shown: number, length: number, place: number): void {
    const isSame = length === place - this.#next;
    // One that only goes on where the last ended says nothing new.
    if (!isSame || this.#spans.at(-1)?.isSame !== true) this.#spans.push({ shown, place: this.#next, isSame });
    this.#next = place;
  }

  /** The place in the stream of a byte that was shown; before it where that is not known to the byte. */
  of(shown: number): number {
    const span = this.#spans.findLast((each) => each.shown <= shown);
    if (span === undefined) return shown;
    return span.isSame ? span.place + shown - span.shown : span.place;
  }
}
