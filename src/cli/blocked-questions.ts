import { createInterface, type Interface } from "node:readline";
import type { BlockedAnswer, BlockedRequest } from "../../contracts/types.js";
import { toInertLine } from "../util/inert-text.js";
import type { Screen, Sink } from "./terminal.js";

/** Less than the time that the sandbox waits, so that the question is gone before its answer would count for nothing. */
const TIMEOUT = 55_000;

const ANSWERS: readonly (readonly [form: RegExp, answer: BlockedAnswer])[] = [
  [/^\s*y(es)?\s*$/i, "allow-once"],
  [/^\s*a(lways)?\s*$/i, "allow"],
];

/** Asks on the terminal about hosts that the rules do not allow, one question after the other. */
export class BlockedQuestions {
  readonly #screen: Screen;
  readonly #lines: Interface;
  readonly #refused = new Set<string>();
  #take: ((line: string | undefined) => void) | undefined;
  #turn: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(screen: Screen) {
    this.#screen = screen;
    // From the start: a line that was typed before a question is not an answer to it.
    this.#lines = createInterface({ input: process.stdin, terminal: false });
    this.#lines.on("line", (line) => this.#take?.(line));
    this.#lines.on("close", () => this.close());
  }

  /** The answer to one question. A refusal is remembered for as long as the command runs. */
  async ask(request: BlockedRequest): Promise<BlockedAnswer> {
    const asked = this.#turn.then(() => this.#askNow(request));
    this.#turn = asked.catch(() => undefined);
    return await asked;
  }

  /** A sink whose writer waits while a question is open, so that the program can't write below it. */
  over(sink: Sink): Sink {
    const idle = async (): Promise<void> => {
      while (this.#take !== undefined) await this.#turn;
    };
    return {
      async write(chunk) {
        await idle();
        await sink.write(chunk);
      },
      async end() {
        await idle();
        await sink.end();
      },
    };
  }

  /** Refuses what is open, and asks nothing more. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#take?.(undefined);
    this.#lines.close();
    process.stdin.unref?.();
  }

  async #askNow({ host, port, method, path, reason }: BlockedRequest): Promise<BlockedAnswer> {
    const where = `${host.includes(":") ? `[${host}]` : host}:${port}`;
    const what = method === undefined ? "" : ` (${method} ${path ?? ""})`;
    // Of a host that is allowed, an answer is about this request alone.
    const subject = reason === "not_allowed" ? where : `${where}${what}`;
    if (this.#isClosed || this.#refused.has(subject)) return "deny";
    const line = await this.#read(
      `glovebox: the command wants to reach ${where}${what}. Allow it? [y]es, [a]lways, [N]o `,
    );
    const answer = ANSWERS.find(([form]) => line !== undefined && form.test(line))?.[1] ?? "deny";
    if (answer === "deny") this.#refused.add(subject);
    const outcome = { "allow-once": "is allowed once", allow: "is allowed from now on", deny: "stays blocked" }[answer];
    await this.#screen.printNote(`${subject} ${outcome}`);
    return answer;
  }

  async #read(question: string): Promise<string | undefined> {
    let timer: NodeJS.Timeout | undefined;
    const line = new Promise<string | undefined>((resolve) => {
      this.#take = resolve;
      timer = setTimeout(() => resolve(undefined), TIMEOUT);
    });
    try {
      await this.#screen.write(this.#screen.stderr, toInertLine(question));
      const answer = await line;
      if (answer === undefined) await this.#screen.write(this.#screen.stderr, "\n");
      return answer;
    } finally {
      clearTimeout(timer);
      this.#take = undefined;
    }
  }
}
