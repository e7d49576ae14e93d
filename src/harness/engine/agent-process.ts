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
}

/** Milliseconds between SIGTERM and SIGKILL. */
const TERM_GRACE = 5_000;

/** A running agent: prompted by stdin, read line by line, ended with all that it started. */
export class AgentProcess {
  readonly #child: SandboxProcess;
  readonly #done: Promise<ProcessExit>;
  #killer: NodeJS.Timeout | undefined;

  private constructor(child: SandboxProcess, options: AgentProcessOptions) {
    this.#child = child;
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

  /** Asks it to end, and kills it when it does not. */
  stop(grace: number = TERM_GRACE): void {
    if (this.#killer !== undefined) return;
    // A kill that fails means that the process, or the sandbox, is gone; `ended` shows which.
    if (grace > 0) this.#child.kill("SIGTERM").catch(() => undefined);
    this.#killer = setTimeout(() => void this.#child.kill("SIGKILL").catch(() => undefined), grace);
  }

  async #follow({ command, onStdout, onStderr, onLine }: AgentProcessOptions): Promise<ProcessExit> {
    const lines = new LineSplitter();
    try {
      const [exit] = await Promise.all([
        this.#child.wait(),
        this.#feed(command.stdin),
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
      await this.#child[Symbol.asyncDispose]();
    }
  }

  async #feed(text: string): Promise<void> {
    const writer = this.#child.stdin?.getWriter();
    try {
      await writer?.write(Buffer.from(text));
      await writer?.close();
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
