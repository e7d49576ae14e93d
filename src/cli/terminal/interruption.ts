import { constants } from "node:os";
import { endProgram } from "./end-program.js";

/** Why the program was interrupted. `SIGPIPE` means that nobody reads an output anymore. */
export type Ending = "SIGINT" | "SIGTERM" | "SIGHUP" | "SIGPIPE";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** Programs that end others often signal the process and its group: so soon, in milliseconds, a second one is no second request. */
const SAME_REQUEST = 500;

/** A request from outside to end the program: the first ends it cleanly, the second at once. Only a keyboard's counts twice within a moment. */
export class Interruption {
  readonly #controller = new AbortController();
  #ending: Ending | undefined;
  #askedAt = 0;
  #isTooLate = false;

  /** Aborted by the first request. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The first request; undefined before it. */
  get ending(): Ending | undefined {
    return this.#ending;
  }

  /** The exit code for an interrupted program. */
  get exitCode(): number | undefined {
    return this.#ending === undefined || this.#isTooLate ? undefined : 128 + constants.signals[this.#ending];
  }

  /** Call this if the work had ended by itself before the request. */
  cameTooLate(): void {
    this.#isTooLate = true;
  }

  /** Listens to the signals of this process from now on. */
  listen(): void {
    for (const name of SIGNALS) {
      process.on(name, () => {
        // Processes in the sandbox end with the channel; the next start reaps the files, which are in the ledger.
        if (this.#isAgain(name)) endProgram(128 + constants.signals[name]);
        this.end(name);
      });
    }
  }

  /** Asks everything to end. */
  end(ending: Ending): void {
    if (this.#ending !== undefined) return;
    this.#ending = ending;
    this.#askedAt = performance.now();
    this.#controller.abort(Object.assign(new Error(`ended by ${ending}`), { exitCode: this.exitCode }));
  }

  #isAgain(name: Ending): boolean {
    if (this.#ending === undefined || this.#ending === "SIGPIPE") return false;
    return name === "SIGINT" || performance.now() - this.#askedAt > SAME_REQUEST;
  }

  /** Calls back on the first request, even if it came earlier. Returns a function that unsubscribes. */
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
