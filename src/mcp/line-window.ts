import { createRedactor, type RedactOptions } from "../util/redact.js";

/** Which lines of a text are wanted, and how much of them. */
export interface WantedLines {
  /** The first, from 1. */
  readonly first: number;
  /** At most so many. */
  readonly most: number;
  /** At most so many bytes. */
  readonly room: number;
  /** What must not be shown in part where a line is cut. */
  readonly hidden: RedactOptions;
}

/** Some lines of a text that comes in pieces. Keeps no more of it than is shown, however long a line is. */
export class LineWindow {
  readonly lines: string[] = [];
  /** How many lines the text has, as far as it came. */
  count = 0;
  /** Whether the last of the lines is not whole. */
  wasCut = false;
  readonly #wanted: WantedLines;
  #room: number;
  #isFull = false;
  /** The line that has not ended: what is kept of it, and how long it is. */
  #parts: string[] = [];
  #bytes = 0;
  #isEmpty = true;

  constructor(wanted: WantedLines) {
    this.#wanted = wanted;
    this.#room = wanted.room;
  }

  /** Takes the next piece. */
  push(text: string): void {
    let from = 0;
    for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n", from)) {
      this.#add(from === end ? "" : text.slice(from, end));
      this.#endLine();
      from = end + 1;
    }
    if (from < text.length) this.#add(text.slice(from));
  }

  /** A last line may have no end. */
  end(): void {
    if (!this.#isEmpty) this.#endLine();
  }

  #add(part: string): void {
    if (part !== "") this.#isEmpty = false;
    if (this.#isFull || this.count + 1 < this.#wanted.first) return;
    if (this.#bytes <= this.#room) this.#parts.push(part);
    this.#bytes += Buffer.byteLength(part);
  }

  #endLine(): void {
    const [text, bytes] = [this.#parts.join(""), this.#bytes];
    this.#parts = [];
    this.#bytes = 0;
    this.#isEmpty = true;
    this.count += 1;
    const { first, most, hidden } = this.#wanted;
    if (this.count < first || this.#isFull) return;
    const isLong = bytes + 1 > this.#room;
    if (this.lines.length === most || (isLong && this.lines.length > 0)) {
      this.#isFull = true;
      return;
    }
    this.wasCut = isLong;
    this.#isFull = isLong;
    this.lines.push(isLong ? `${startOf(text, this.#room, hidden)}… [the line has ${bytes} bytes]` : text);
    this.#room -= bytes + 1;
  }
}

/** The first bytes of a text, up to a whole character, and never a part of a secret. */
function startOf(text: string, room: number, hidden: RedactOptions): string {
  const bytes = Buffer.from(text).subarray(0, room);
  return createRedactor(hidden).write(new TextDecoder().decode(bytes, { stream: true }));
}
