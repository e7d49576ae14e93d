import type { ProcessExit, SandboxProcess } from "../../../contracts/types.js";
import type { Sandbox } from "../../sandbox/types.js";
import type { AgentCommand } from "../types.js";
import { LineSplitter } from "./lines.js";

/** The program to run, and the callbacks for its output. */
export interface AgentProcessOptions {
  readonly command: AgentCommand;
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  onStdout(chunk: Uint8Array): Promise<void>;
  onStderr(chunk: Uint8Array): Promise<void>;
  onLine(line: string): Promise<void>;
  /** Called for a line that was too long to be read. */
  onOverlong?(): void;
  /** Leave stdin open for `send`, and write no prompt. */
  readonly isDialog?: boolean;
}

/** What an agent may leave unread of what it was sent. */
const MOST_UNREAD = 64 * 1024 * 1024;
/** Milliseconds that an agent has to end after its stdin was closed. */
const LEAVE_GRACE = 2_000;

/** Milliseconds between SIGTERM and SIGKILL. */
const TERM_GRACE = 5_000;

/** A running agent: prompted by stdin or talked with, read line by line, ended with all that it started. */
export class AgentProcess {
  readonly #child: SandboxProcess;
  readonly #done: Promise<ProcessExit>;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array> | undefined;
  #killer: NodeJS.Timeout | undefined;
  #leaver: NodeJS.Timeout | undefined;
  #unread = 0;

  private constructor(child: SandboxProcess, options: AgentProcessOptions) {
    this.#child = child;
    this.#writer = child.stdin?.getWriter();
    this.#done = this.#follow(options);
  }

  /** Starts the program and gives it the prompt. */
  static async start(sandbox: Sandbox, options: AgentProcessOptions): Promise<AgentProcess> {
    const { command, env, cwd } = options;
    const child = await sandbox.spawn({
      argv: command.argv,
      env: { ...command.env, ...env },
      stdin: "pipe",
      ...(cwd !== undefined && { cwd }),
    });
    return new AgentProcess(child, options);
  }

  /** Resolves when the process has ended and all its output was read. */
  get ended(): Promise<ProcessExit> {
    return this.#done;
  }

  /** Writes a line to an agent that is talked with; kills it if it doesn't read what it is sent. */
  send(line: string): void {
    const bytes = Buffer.from(`${line}\n`);
    this.#unread += bytes.length;
    if (this.#unread > MOST_UNREAD) this.stop(0);
    else void this.#write(bytes);
  }

  /** Ends a conversation: closes stdin, and soon asks it to end. */
  leave(): void {
    if (this.#leaver !== undefined) return;
    this.#writer?.close().catch(() => undefined);
    this.#leaver = setTimeout(() => this.stop(), LEAVE_GRACE);
  }

  /** Asks it to end, and kills it when it does not. */
  stop(grace: number = TERM_GRACE): void {
    if (this.#killer !== undefined) return;
    // A kill that fails means that the process, or the sandbox, is gone; `ended` shows which.
    if (grace > 0) this.#child.kill("SIGTERM").catch(() => undefined);
    this.#killer = setTimeout(() => void this.#child.kill("SIGKILL").catch(() => undefined), grace);
  }

  async #follow({
    command,
    isDialog,
    onStdout,
    onStderr,
    onLine,
    onOverlong,
  }: AgentProcessOptions): Promise<ProcessExit> {
    const lines = new LineSplitter(onOverlong);
    try {
      const [exit] = await Promise.all([
        this.#child.wait(),
        isDialog === true ? undefined : this.#feed(command.stdin),
        pump(this.#child.stdout, async (chunk) => {
          await onStdout(chunk);
          for (const line of lines.push(chunk)) await onLine(line);
        }),
        pump(this.#child.stderr, onStderr),
      ]);
      for (const line of lines.end()) await onLine(line);
      return exit;
    } finally {
      clearTimeout(this.#killer);
      clearTimeout(this.#leaver);
      await this.#child[Symbol.asyncDispose]();
    }
  }

  async #write(bytes: Uint8Array): Promise<void> {
    try {
      await this.#writer?.write(bytes);
    } catch {
      // It has ended; its output says why.
    }
    this.#unread -= bytes.length;
  }

  async #feed(text: string): Promise<void> {
    try {
      await this.#writer?.write(Buffer.from(text));
      await this.#writer?.close();
    } catch {
      // It ended without reading; its output says why.
    }
  }
}

async function pump(stream: ReadableStream<Uint8Array>, take: (chunk: Uint8Array) => Promise<void>): Promise<void> {
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    await take(value);
  }
}
