/** Longer lines are not events; they are skipped. */
const MAX_LINE = 4 * 1024 * 1024;

/** Cuts a byte stream into lines, in bounded memory whatever the input. */
export class LineSplitter {
  readonly #decoder = new TextDecoder();
  #pending = "";
  #isOverlong = false;
  readonly #onOverlong: () => void;

  /** `onOverlong` is called for each line that is skipped. */
  constructor(onOverlong: () => void = () => undefined) {
    this.#onOverlong = onOverlong;
  }

  /** Takes bytes and gives the lines that are now complete. */
  push(chunk: Uint8Array): string[] {
    const pieces = this.#decoder.decode(chunk, { stream: true }).split("\n");
    const lines: string[] = [];
    for (const [at, piece] of pieces.entries()) {
      if (at > 0) {
        if (!this.#isOverlong) lines.push(this.#pending.replace(/\r$/, ""));
        this.#pending = "";
        this.#isOverlong = false;
      }
      if (!this.#isOverlong && this.#pending.length + piece.length > MAX_LINE) {
        this.#onOverlong();
        this.#isOverlong = true;
        this.#pending = "";
      } else if (!this.#isOverlong) this.#pending += piece;
    }
    return lines;
  }

  /** Gives a last line without a line end. */
  end(): string[] {
    const last = this.#pending + this.#decoder.decode();
    return last === "" || this.#isOverlong ? [] : [last];
  }
}
