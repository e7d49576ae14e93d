const MARKS = { stdout: Buffer.from([1, 1, 1]), stderr: Buffer.from([2, 2, 2]) } as const;

/**
 * The one log of a command: whole lines of both streams, each behind its mark.
 *
 * As the service's own, unless it is told not to, it adds a line end where there is none, drops NUL and the marks, and replaces what is not UTF-8.
 */
export class CommandLog {
  readonly #chunks: Buffer[] = [];
  readonly #listeners = new Set<(chunk: Buffer) => void>();
  readonly #changes: boolean;
  readonly #open = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };

  constructor(changes: boolean) {
    this.#changes = changes;
  }

  /** What a stream of the command said. */
  push(stream: "stdout" | "stderr", chunk: Buffer): void {
    let rest = Buffer.concat([this.#open[stream], chunk]);
    const lines: Buffer[] = [];
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      const line = rest.subarray(0, end);
      lines.push(MARKS[stream], this.#changes ? clean(line) : line, Buffer.from("\n"));
      rest = rest.subarray(end + 1);
    }
    this.#open[stream] = rest;
    if (lines.length > 0) this.#append(Buffer.concat(lines));
  }

  /** The stream has ended; an open line is closed. */
  finish(stream: "stdout" | "stderr"): void {
    if (this.#open[stream].length === 0) return;
    if (this.#changes) this.push(stream, Buffer.from("\n"));
    else this.#append(Buffer.concat([MARKS[stream], this.#open[stream]]));
  }

  /** Calls with all that was said so far, then with what follows, until the function that it gives is called. */
  follow(listener: (chunk: Buffer) => void): () => void {
    if (this.#chunks.length > 0) listener(Buffer.concat(this.#chunks));
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The log as it is read over HTTP. */
  read(): { output: string; stdout: string; stderr: string } {
    const all = Buffer.concat(this.#chunks);
    const texts = { output: all.toString("utf8"), stdout: "", stderr: "" };
    for (const line of texts.output.split(/(?<=\n)/)) {
      if (line.startsWith("\x01\x01\x01")) texts.stdout += line.slice(3);
      if (line.startsWith("\x02\x02\x02")) texts.stderr += line.slice(3);
    }
    return texts;
  }

  #append(chunk: Buffer): void {
    this.#chunks.push(chunk);
    for (const listener of this.#listeners) listener(chunk);
  }
}

function clean(line: Buffer): Buffer {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the marks of the log
  const text = line.toString("utf8").replaceAll(/\0|\x01\x01\x01|\x02\x02\x02/g, "");
  return Buffer.from(text);
}
