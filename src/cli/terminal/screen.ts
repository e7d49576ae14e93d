import { toInertLine } from "../../util/inert-text.js";
import type { Output } from "./output.js";
import { Progress } from "./progress.js";
import { createStyle, type Style } from "./style.js";

/** Standard output and standard error, as verbs use them. */
export class Screen {
  readonly stdout: Output;
  readonly stderr: Output;
  /** Colours for standard output. */
  readonly style: Style;
  readonly #errorStyle: Style;
  readonly #closed = new Set<Output>();

  constructor(
    stdout: Output,
    stderr: Output,
    env: Readonly<Record<string, string | undefined>>,
    onClosed: (error: NodeJS.ErrnoException) => void = () => undefined,
  ) {
    this.stdout = stdout;
    this.stderr = stderr;
    this.style = createStyle(stdout, env);
    this.#errorStyle = createStyle(stderr, env);
    for (const output of [stdout, stderr]) {
      output.on("error", (error: NodeJS.ErrnoException) => {
        this.#closed.add(output);
        onClosed(error);
      });
    }
  }

  /** Writes to standard output; resolves once it is written, so that a slow reader slows us down. */
  print(content: string | Uint8Array): Promise<void> {
    return this.write(this.stdout, content);
  }

  /** Writes to one of the outputs. Does nothing if nobody reads it anymore. */
  write(output: Output, content: string | Uint8Array): Promise<void> {
    if (content.length === 0 || this.#closed.has(output)) return Promise.resolve();
    return new Promise((resolve) => output.write(content, () => resolve()));
  }

  /** Prints a value as the one document of `--json`, with control characters escaped the JSON way. */
  printJson(value: unknown): Promise<void> {
    const text = JSON.stringify(value, undefined, this.stdout.isTTY === true ? 2 : undefined);
    return this.print(`${text.replace(/[\u007f-\uffff]/g, escapeActive)}\n`);
  }

  /** Prints one document of many, on a line of its own. */
  printJsonLine(value: unknown): Promise<void> {
    return this.print(`${JSON.stringify(value).replace(/[\u007f-\uffff]/g, escapeActive)}\n`);
  }

  /** Prints what went wrong on one line of standard error, and the hint on another. */
  async printError(message: string, hint: string | undefined): Promise<void> {
    const { bad, dim } = this.#errorStyle;
    const lines = [`${bad("glovebox:")} ${toInertLine(message)}\n`];
    if (hint !== undefined) lines.push(`${dim("hint:")} ${toInertLine(hint)}\n`);
    await this.write(this.stderr, lines.join(""));
  }

  /** Prints a note on one line of standard error. */
  async printNote(message: string): Promise<void> {
    await this.write(this.stderr, `${this.#errorStyle.dim("glovebox:")} ${toInertLine(message)}\n`);
  }

  /** Shows a progress line on a terminal if the work takes more than a second. */
  async during<T>(what: string, work: (progress: Progress) => Promise<T>): Promise<T> {
    const progress = new Progress(this.stderr, what);
    try {
      return await work(progress);
    } finally {
      progress.stop();
    }
  }
}

function escapeActive(character: string): string {
  const isSafe = /[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u.test(character);
  return isSafe ? character : `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
