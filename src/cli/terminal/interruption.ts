import { constants } from "node:os";
import { leave } from "./leave.js";

/** What can end this program from outside. `SIGPIPE` stands for an output that nobody reads any more. */
export type Ending = "SIGINT" | "SIGTERM" | "SIGHUP" | "SIGPIPE";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** The wish, from outside, that the program ends: the first is followed in order, the second at once. */
export class Interruption {
  readonly #controller = new AbortController();
  #ending: Ending | undefined;
  #isTooLate = false;

  /** Aborted when the program is to end. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** What came first; undefined while nothing did. */
  get ending(): Ending | undefined {
    return this.#ending;
  }

  /** The exit code that tells of it. */
  get exitCode(): number | undefined {
    return this.#ending === undefined || this.#isTooLate ? undefined : 128 + constants.signals[this.#ending];
  }

  /** To be called when what was asked to end had come to its own end before. */
  cameTooLate(): void {
    this.#isTooLate = true;
  }

  /** Follows the signals of this process from now on. */
  listen(): void {
    for (const name of SIGNALS) {
      process.on(name, () => {
        // Whatever runs inside ends with its channel; files that are left are in the ledger, for the next start to remove.
        if (this.#ending !== undefined && this.#ending !== "SIGPIPE") leave(128 + constants.signals[name]);
        this.end(name);
      });
    }
  }

  /** Asks everything to end. */
  end(ending: Ending): void {
    if (this.#ending !== undefined) return;
    this.#ending = ending;
    this.#controller.abort(Object.assign(new Error(`ended by ${ending}`), { exitCode: this.exitCode }));
  }

  /** Calls back when the program is to end, also when that was before. Returns what forgets it. */
  onEnd(callback: (ending: Ending) => void): () => void {
    const call = (): void => callback(this.#ending ?? "SIGTERM");
    if (this.#ending !== undefined) {
      call();
      return () => undefined;
    }
    this.signal.addEventListener("abort", call, { once: true });
    return () => this.signal.removeEventListener("abort", call);
  }
}
