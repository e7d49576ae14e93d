import type { SandboxProcess } from "../../../../contracts/types.js";
import type { AgentHost } from "../../types.js";
import { asCount, asRecords, asText, type Untrusted } from "../json-line.js";
import { RPC_CODES, RpcError } from "./rpc.js";

/** Terminals that an agent may have at once. */
const MOST_TERMINALS = 32;
/** Output that is kept of each. */
const MOST_OUTPUT = 1024 * 1024;
const MOST_PIECES = 1_000;
const MOST_WORDS = 10_000;

interface ExitStatus {
  readonly exitCode: number | null;
  readonly signal: string | null;
}

/** A command that runs in the sandbox for the agent, and the end of its output. */
class Terminal {
  readonly exited: Promise<ExitStatus>;
  readonly #process: SandboxProcess;
  readonly #limit: number;
  #pieces: Buffer[] = [];
  #size = 0;
  #isTruncated = false;
  #status: ExitStatus | null = null;

  constructor(process: SandboxProcess, limit: number) {
    this.#process = process;
    this.#limit = limit;
    this.exited = this.#follow();
    // It may be that nobody waits for the end.
    this.exited.catch(() => undefined);
  }

  /** What it printed, and how it ended if it has. */
  get output(): { output: string; truncated: boolean; exitStatus: ExitStatus | null } {
    this.#compact();
    return {
      output: Buffer.concat(this.#pieces).toString("utf8"),
      truncated: this.#isTruncated,
      exitStatus: this.#status,
    };
  }

  async kill(): Promise<void> {
    await this.#process.kill("SIGKILL");
  }

  async close(): Promise<void> {
    await this.kill().catch(() => undefined);
    await this.exited.catch(() => undefined);
    await this.#process[Symbol.asyncDispose]();
  }

  async #follow(): Promise<ExitStatus> {
    const [exit] = await Promise.all([
      this.#process.wait(),
      ...[this.#process.stdout, this.#process.stderr].map((stream) => this.#keep(stream)),
    ]);
    const { exitCode, signal } = exit;
    this.#status = signal === undefined ? { exitCode, signal: null } : { exitCode: null, signal };
    return this.#status;
  }

  async #keep(stream: ReadableStream<Uint8Array>): Promise<void> {
    const reader = stream.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      this.#pieces.push(Buffer.from(value));
      this.#size += value.length;
      if (this.#size > 2 * MOST_OUTPUT || this.#pieces.length > MOST_PIECES) this.#compact();
    }
  }

  /** Makes one piece of all, and drops from its start what is beyond the limit. */
  #compact(): void {
    const all = Buffer.concat(this.#pieces);
    const isTooLong = all.length > this.#limit;
    this.#isTruncated ||= isTooLong;
    const kept = isTooLong ? fromCharacter(all.subarray(all.length - this.#limit)) : all;
    this.#pieces = [kept];
    this.#size = kept.length;
  }
}

/** The bytes from the first whole character on. */
function fromCharacter(bytes: Buffer): Buffer {
  let at = 0;
  while (at < bytes.length && ((bytes[at] ?? 0) & 0xc0) === 0x80) at += 1;
  return Buffer.from(bytes.subarray(at));
}

/** The terminals of one agent. They are processes of the sandbox, and end with the agent. */
export class Terminals {
  readonly #host: AgentHost;
  readonly #open = new Map<string, Terminal>();
  #made = 0;
  #starting = 0;
  #isClosed = false;

  constructor(host: AgentHost) {
    this.#host = host;
  }

  /** `terminal/create` */
  async create(params: Untrusted): Promise<{ terminalId: string }> {
    if (this.#isClosed || this.#open.size + this.#starting >= MOST_TERMINALS) {
      throw new RpcError(RPC_CODES.internal, `there are ${this.#open.size} terminals; release one`);
    }
    const command = asText(params["command"]);
    if (command === undefined) throw new RpcError(RPC_CODES.invalidParams, "command must be a text that is not empty");
    const words = argumentsOf(params["args"]);
    this.#starting += 1;
    try {
      const process = await this.#host.sandbox.spawn({
        // Agents write a whole shell line as the command, without arguments.
        argv: words.length === 0 ? ["/bin/sh", "-c", command] : [command, ...words],
        cwd: asText(params["cwd"]) ?? this.#host.cwd,
        env: { ...this.#host.env, ...variablesOf(params["env"]) },
      });
      const terminal = new Terminal(process, Math.min(asCount(params["outputByteLimit"]) ?? MOST_OUTPUT, MOST_OUTPUT));
      if (this.#isClosed) {
        await terminal.close();
        throw new RpcError(RPC_CODES.internal, "the session is over");
      }
      const terminalId = `terminal-${++this.#made}`;
      this.#open.set(terminalId, terminal);
      return { terminalId };
    } finally {
      this.#starting -= 1;
    }
  }

  /** `terminal/output` */
  output(params: Untrusted): object {
    return this.#find(params).output;
  }

  /** `terminal/wait_for_exit` */
  async waitForExit(params: Untrusted): Promise<object> {
    return await this.#find(params).exited;
  }

  /** `terminal/kill` */
  async kill(params: Untrusted): Promise<object> {
    await this.#find(params).kill();
    return {};
  }

  /** `terminal/release` */
  async release(params: Untrusted): Promise<object> {
    const terminal = this.#find(params);
    this.#open.delete(asText(params["terminalId"]) ?? "");
    await terminal.close();
    return {};
  }

  /** Ends all of them. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#open.values()].map((terminal) => terminal.close()));
    this.#open.clear();
  }

  #find(params: Untrusted): Terminal {
    const terminal = this.#open.get(asText(params["terminalId"]) ?? "");
    if (terminal === undefined) throw new RpcError(RPC_CODES.notFound, "there is no such terminal");
    return terminal;
  }
}

function argumentsOf(value: unknown): string[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value) && value.length <= MOST_WORDS && value.every((word) => typeof word === "string"))
    return value;
  throw new RpcError(RPC_CODES.invalidParams, "args must be a list of texts");
}

function variablesOf(value: unknown): Record<string, string> {
  return Object.fromEntries(
    asRecords(value).flatMap(({ name, value: text }) =>
      typeof name === "string" && typeof text === "string" ? [[name, text]] : [],
    ),
  );
}
