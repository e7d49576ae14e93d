import { spawnSync } from "node:child_process";
import { existsSync, writeSync } from "node:fs";
import type { ReadStream, WriteStream } from "node:tty";

/**
 * What takes back whatever a program may have left a terminal in: an unfinished sequence, another screen, mouse, paste and
 * focus reports, a hidden cursor, margins, character sets, colours. None of it moves the cursor on the main screen.
 */
export const TERMINAL_RESET: string = [
  "\x18\x1b\\",
  "\x1b[?1047l",
  "\x1b[?9;1000;1001;1002;1003;1004;1005;1006;1015;1016;2004l",
  "\x1b[?1l\x1b>\x1b[<u",
  "\x1b[!p\x1b[?25h\x1b[?7h\x1b(B\x0f\x1b[0m",
].join("");

/** The user's terminal while a program inside drives it. It is given back in every way out but SIGKILL. */
export class RawTerminal {
  readonly #input: ReadStream;
  readonly #output: WriteStream & { readonly fd?: number };
  #isRaw = false;
  #onResize: (() => void) | undefined;

  constructor(input: ReadStream, output: WriteStream) {
    this.#input = input;
    this.#output = output;
  }

  /** Columns and rows now. */
  get size(): { cols: number; rows: number } {
    return { cols: this.#output.columns || 80, rows: this.#output.rows || 24 };
  }

  /** Hands every key to the program inside, and tells it of every new size. */
  enter(onSize: (cols: number, rows: number) => void): void {
    this.#onResize = () => onSize(this.size.cols, this.size.rows);
    this.#output.on("resize", this.#onResize);
    process.on("exit", this.#restore);
    process.on("SIGTSTP", this.#pause);
    process.on("SIGCONT", this.#resume);
    this.#setRaw(true);
    // It may have changed while the sandbox was opened.
    this.#onResize();
  }

  /** Gives the terminal back as it was. */
  leave(): void {
    if (this.#onResize !== undefined) this.#output.off("resize", this.#onResize);
    process.off("exit", this.#restore).off("SIGTSTP", this.#pause).off("SIGCONT", this.#resume);
    this.#restore();
    this.#input.pause();
  }

  readonly #restore = (): void => {
    if (!this.#isRaw) return;
    this.#setRaw(false);
    try {
      // At the exit of the process only what is written at once is written at all.
      writeSync(this.#output.fd ?? 1, TERMINAL_RESET);
    } catch {
      // The terminal is gone.
    }
  };

  readonly #pause = (): void => {
    this.#restore();
    process.kill(process.pid, "SIGSTOP");
  };

  readonly #resume = (): void => {
    this.#setRaw(true);
    this.#onResize?.();
  };

  #setRaw(isRaw: boolean): void {
    this.#isRaw = isRaw;
    try {
      this.#input.setRawMode(isRaw);
      if (isRaw) passOutputOn();
    } catch {
      // The terminal is gone.
    }
  }
}

/**
 * Node's raw mode still turns each line feed into a line end, which the terminal inside has done already: programs that
 * move the cursor by line feeds would be torn apart. Leaving raw mode takes this back with the rest.
 */
function passOutputOn(): void {
  const stty = ["/usr/bin/stty", "/bin/stty"].find((path) => existsSync(path));
  if (stty !== undefined) spawnSync(stty, ["-opost"], { stdio: ["inherit", "ignore", "ignore"], env: {} });
}
