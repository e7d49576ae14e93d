import type { SandboxError } from "../../contracts/errors.js";
import { toSandboxError } from "../../contracts/errors.js";
import type { DriverExit, DriverProcess } from "../sandbox/types.js";
import { OutputCollector } from "../util/output-collector.js";
import type { CommandStatus } from "./types.js";

/** Log kept of one command, head and tail. */
const MAX_LOG = 1 << 20;

/** What a container runs by itself, and what it has written so far. */
export class OwnCommand {
  readonly #log = new OutputCollector(MAX_LOG);
  /** What is still looked for. */
  #awaited: Buffer | undefined;
  readonly #tails: [Buffer, Buffer] = [empty, empty];
  #isWritten: () => void = () => undefined;
  #exit: DriverExit | undefined;
  #lost: SandboxError | undefined;
  /** Resolves once the command is over and its log is whole; undefined when nobody can know how it ended. */
  readonly ended: Promise<DriverExit | undefined>;

  /** Resolves once it has written what is awaited of it. */
  readonly written: Promise<void>;

  /** What is `awaited` is looked for from the first byte on. */
  constructor(process: DriverProcess, awaited?: string) {
    if (awaited !== undefined) this.#awaited = Buffer.from(awaited);
    this.written = new Promise((resolve) => {
      this.#isWritten = resolve;
    });
    this.ended = this.#follow(process);
  }

  /** What there is to know now. */
  get status(): CommandStatus {
    const { text } = this.#log.result(false);
    if (this.#exit !== undefined) return { running: false, exitCode: this.#exit.exitCode, logs: text };
    return { running: this.#lost === undefined, logs: text };
  }

  async #follow(process: DriverProcess): Promise<DriverExit | undefined> {
    try {
      const [exit] = await Promise.all([process.wait(), this.#read(process.stdout, 0), this.#read(process.stderr, 1)]);
      this.#exit = exit;
      return exit;
    } catch (error) {
      this.#lost = toSandboxError(error);
      return undefined;
    }
  }

  async #read(stream: AsyncIterable<Uint8Array>, index: 0 | 1): Promise<void> {
    for await (const chunk of stream) {
      this.#log.push(chunk);
      this.#look(Buffer.from(chunk), index);
    }
  }

  /** A text may come in two pieces, and the two outputs are not one text. */
  #look(chunk: Buffer, index: 0 | 1): void {
    if (this.#awaited === undefined) return;
    const seen = Buffer.concat([this.#tails[index], chunk]);
    this.#tails[index] = seen.subarray(Math.max(0, seen.length - this.#awaited.length + 1));
    if (!seen.includes(this.#awaited)) return;
    this.#awaited = undefined;
    this.#isWritten();
  }
}

const empty = Buffer.alloc(0);

/** The end of a log, for messages. */
export function logTail(logs: string, lines = 20): string {
  return logs.trimEnd().split("\n").slice(-lines).join("\n").slice(-4_000);
}
