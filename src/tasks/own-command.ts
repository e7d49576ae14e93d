import type { SandboxError } from "../../contracts/errors.js";
import { toSandboxError } from "../../contracts/errors.js";
import type { DriverExit, DriverProcess } from "../sandbox/types.js";
import { OutputCollector } from "../util/output-collector.js";
import type { CommandStatus } from "./types.js";

/** Bytes of a command's log that are kept: its head and its tail. */
const MAX_LOG = 1 << 20;

/** The command that a container runs by itself, and its log so far. */
export class OwnCommand {
  readonly #log = new OutputCollector(MAX_LOG);
  /** The text to look for in its output, until it is found. */
  #awaited: Buffer | undefined;
  readonly #tails: [Buffer, Buffer] = [empty, empty];
  #isWritten: () => void = () => undefined;
  #exit: DriverExit | undefined;
  #lost: SandboxError | undefined;
  /** Resolves when the command has ended and its log is complete; with undefined when its container was lost. */
  readonly ended: Promise<DriverExit | undefined>;

  /** Resolves when it has written the awaited text. */
  readonly written: Promise<void>;

  /** Looks for `awaited` from the first byte of output. */
  constructor(process: DriverProcess, awaited?: string) {
    if (awaited !== undefined) this.#awaited = Buffer.from(awaited);
    this.written = new Promise((resolve) => {
      this.#isWritten = resolve;
    });
    this.ended = this.#follow(process);
  }

  /** Its state now. */
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

  /** The text may arrive in two chunks of one output, but never half in each output. */
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
