import { StringDecoder } from "node:string_decoder";
import type { CommandResult, ProcessHandle, SpawnProcessOptions } from "@mastra/core/workspace";
import type { SandboxProcess } from "../../../contracts/types.js";
import { mastra } from "./load-mastra.js";

/** What Mastra reports for a command that reached its deadline, as `timeout(1)` does. */
const TIMED_OUT = 124;
/** What it reports for a process whose end nobody saw, because the sandbox was lost. */
const LOST = 1;

const Base: typeof ProcessHandle = mastra.ProcessHandle;

/** A process of the sandbox as Mastra handles one. */
export class GloveboxProcessHandle extends Base {
  readonly pid: string;
  #exitCode: number | undefined;
  readonly #process: SandboxProcess;
  readonly #result: Promise<CommandResult>;
  #input: WritableStreamDefaultWriter<Uint8Array> | undefined;

  constructor(process: SandboxProcess, options: SpawnProcessOptions) {
    super(options);
    this.pid = process.id;
    this.#process = process;
    this.#input = process.stdin?.getWriter();
    this.#result = this.#follow(options.timeout);
    // Its failure is what `wait` says, whether anybody asks or not; and it runs no more.
    this.#result.catch(() => {
      this.#exitCode ??= LOST;
    });
  }

  get exitCode(): number | undefined {
    return this.#exitCode;
  }

  override async wait(): Promise<CommandResult> {
    return await this.#result;
  }

  async kill(): Promise<boolean> {
    if (this.#exitCode !== undefined) return false;
    await this.#process.kill("SIGKILL");
    return true;
  }

  async sendStdin(data: string): Promise<void> {
    await this.#openInput().write(Buffer.from(data));
  }

  override async closeStdin(): Promise<void> {
    const input = this.#openInput();
    this.#input = undefined;
    await input.close();
  }

  #openInput(): WritableStreamDefaultWriter<Uint8Array> {
    if (this.#exitCode !== undefined) {
      throw new Error(`Process ${this.pid} has already exited with code ${this.#exitCode}`);
    }
    if (this.#input === undefined) throw new Error(`Process ${this.pid} has no open stdin`);
    return this.#input;
  }

  async #follow(timeout: number | undefined): Promise<CommandResult> {
    const { stdout, stderr } = this.#process;
    const [exit] = await Promise.all([
      this.#process.wait(),
      emitText(stdout, (text) => this.emitStdout(text)),
      emitText(stderr, (text) => this.emitStderr(text)),
    ]);
    if (exit.timedOut) this.emitStderr(`\nProcess timed out after ${timeout}ms`);
    const exitCode = exit.timedOut ? TIMED_OUT : exit.exitCode;
    this.#exitCode = exitCode;
    return {
      success: exitCode === 0,
      exitCode,
      stdout: this.stdout,
      stderr: this.stderr,
      executionTimeMs: exit.durationMs,
      timedOut: exit.timedOut,
      killed: exit.signal !== undefined,
    };
  }
}

/** Passes a stream on as text, never cut within a character. */
async function emitText(stream: ReadableStream<Uint8Array>, emit: (text: string) => void): Promise<void> {
  const decoder = new StringDecoder();
  const emitSome = (text: string): void => {
    if (text !== "") emit(text);
  };
  for await (const chunk of stream) emitSome(decoder.write(Buffer.from(chunk)));
  emitSome(decoder.end());
}
