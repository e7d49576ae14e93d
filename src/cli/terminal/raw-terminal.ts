import { spawnSync } from "node:child_process";
import { existsSync, writeSync } from "node:fs";
import type { ReadStream, WriteStream } from "node:tty";

/**
 * Resets every mode a program may have left set: an unfinished sequence, the other screen, mouse, paste and focus reports,
 * a hidden cursor, margins, character sets, colours. None of it moves the cursor on the main screen.
 */
export const TERMINAL_RESET: string = [
  "\x18\x1b\\",
  "\x1b[?1047l",
  "\x1b[?9;1000;1001;1002;1003;1004;1005;1006;1015;1016;2004l",
  "\x1b[?1l\x1b>\x1b[<u",
  "\x1b[!p\x1b[?25h\x1b[?7h\x1b(B\x0f\x1b[0m",
].join("");

/** The user's terminal while a program in the sandbox controls it. Restored on every exit except SIGKILL. */
export class RawTerminal {
  readonly #input: ReadStream;
  readonly #output: WriteStream & { readonly fd?: number };
  #isRaw = false;
  #onResize: (() => void) | undefined;

  constructor(input: ReadStream, output: WriteStream) {
    this.#input = input;
    this.#output = output;
  }

  /** The current columns and rows. */
  get size(): { cols: number; rows: number } {
    return { cols: this.#output.columns || 80, rows: this.#output.rows || 24 };
  }

  /** Passes every key to the program in the sandbox, and calls `onSize` with every new size. */
  enter(onSize: (cols: number, rows: number) => void): void {
    this.#onResize = () => onSize(this.size.cols, this.size.rows);
    this.#output.on("resize", this.#onResize);
    process.on("exit", this.#restore);
    process.on("SIGTSTP", this.#pause);
    process.on("SIGCONT", this.#resume);
    this.#setRaw(true);
    // The size may have changed while the sandbox was opening.
    this.#onResize();
  }

  /** Restores the terminal. */
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
      // While the process exits, only synchronous writes arrive.
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
 * Node's raw mode still turns each line feed into CR LF, which the terminal in the sandbox has done already. That breaks
 * programs that move the cursor by line feeds. Leaving raw mode undoes this too.
 */
function passOutputOn(): void {
  const stty = ["/usr/bin/stty", "/bin/stty"].find((path) => existsSync(path));
  if (stty !== undefined) spawnSync(stty, ["-opost"], { stdio: ["inherit", "ignore", "ignore"], env: {} });
}
