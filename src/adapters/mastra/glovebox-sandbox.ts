import { randomBytes } from "node:crypto";
import type {
  CommandResult,
  ExecuteCommandOptions,
  InstructionsOption,
  MastraSandbox,
  MastraSandboxOptions,
  ProviderStatus,
  SandboxCloneOptions,
  SandboxFileInput,
  SandboxInfo,
  SandboxNetworking,
} from "@mastra/core/workspace";
import { SandboxError } from "../../../contracts/errors.js";
import type { Sandbox } from "../../../contracts/sandbox.js";
import { type OpenOptions, removeSandbox } from "../../sandbox.js";
import { defined } from "../../util/defined.js";
import { shellQuote } from "../../util/shell.js";
import { keepOf, openForAgent } from "../open-for-agent.js";
import { GloveboxProcessManager } from "./glovebox-process-manager.js";
import { mastra } from "./load-mastra.js";

type Hooks = Omit<MastraSandboxOptions, "processes">;
type InstructionsRequest = Pick<Parameters<Exclude<InstructionsOption, string>>[0], "requestContext">;

/**
 * How to make a sandbox for a Mastra workspace: the options of `openSandbox`, and what Mastra has besides. With `keep`, `stop` closes the sandbox and
 * `start` reopens its files, those of `$HOME` and `/tmp` too where the backend can keep them, also in a later process if it has a `name` and `ifExists: "reopen"`. Without it, `stop` ends all processes, and the files
 * live until `destroy` or the end of this process.
 */
export interface GloveboxSandboxOptions extends Omit<OpenOptions, "id">, Hooks {
  /** Mastra's name for the sandbox. Default: a random one. */
  id?: string;
  /** Id of a kept Glovebox sandbox to reopen. Excludes every option that makes one. */
  sandboxId?: string;
  /** Deadline of commands that have none, in milliseconds. Default: none. */
  timeout?: number;
  /** What the model reads about the sandbox, or what to make of the usual text, as in Mastra's own sandboxes. */
  instructions?: InstructionsOption;
}

const Base: typeof MastraSandbox = mastra.MastraSandbox;

/** A Glovebox sandbox for Mastra's workspaces. It is opened at the first use. */
export class GloveboxSandbox extends Base {
  readonly id: string;
  readonly name = "GloveboxSandbox";
  readonly provider = "glovebox";
  status: ProviderStatus = "pending";
  /** Deadline of commands that have none, in milliseconds. */
  readonly timeout: number | undefined;
  declare readonly processes: GloveboxProcessManager;
  override readonly networking: SandboxNetworking = { getPortUrl: async (port) => await this.#portUrl(port) };
  readonly #options: OpenOptions;
  readonly #instructions: GloveboxSandboxOptions["instructions"];
  readonly #hooks: Hooks;
  #opened: Sandbox | undefined;
  #keptId: string | undefined;
  #lastUsedAt: Date | undefined;

  constructor(options: GloveboxSandboxOptions = {}) {
    const { id, sandboxId, timeout, instructions, onStart, onStop, onDestroy, ...open } = options;
    const hooks = defined({ onStart, onStop, onDestroy });
    super({ ...hooks, name: "GloveboxSandbox", processes: new GloveboxProcessManager() });
    this.id = id ?? `glovebox-${randomBytes(4).toString("hex")}`;
    this.timeout = timeout;
    this.#options = sandboxId === undefined ? open : { ...open, id: sandboxId };
    this.#instructions = instructions;
    this.#hooks = hooks;
  }

  /** The sandbox itself, with everything that Mastra has no word for. Undefined before the first start and after a stop that closed it. */
  get sandbox(): Sandbox | undefined {
    return this.#opened;
  }

  override async start(): Promise<void> {
    if (this.#opened !== undefined) return;
    this.#opened = await openForAgent(await withWholeKeep(this.#reopenable())).catch(async (error: unknown) => {
      const wasRemoved = error instanceof SandboxError && error.code === "not_found" && this.#keptId !== undefined;
      if (!wasRemoved || this.#options.id !== undefined) throw error;
      this.logger.warn("The kept sandbox was removed; opening another", { sandbox: this.id, kept: this.#keptId });
      this.#keptId = undefined;
      return await openForAgent(await withWholeKeep(this.#options));
    });
  }

  override async stop(): Promise<void> {
    await this.processes.killAll();
    if (this.#isKept()) await this.#close();
  }

  override async destroy(): Promise<void> {
    const id = this.#opened?.id ?? this.#keptId;
    await this.#close();
    if (this.#isKept() && id !== undefined) await removeSandbox(id);
  }

  /** Runs a command to its end. Non-zero exit codes, deadlines and aborts are results. `args` are quoted for the shell. */
  override async executeCommand(
    command: string,
    args: string[] = [],
    options: ExecuteCommandOptions = {},
  ): Promise<CommandResult> {
    const line = args.length === 0 ? command : `${command} ${shellQuote(args)}`;
    const maxRetainedBytes = options.maxRetainedBytes ?? Number.POSITIVE_INFINITY;
    const started = { ...options, maxRetainedBytes, stdin: "none" as const };
    const handle = await this.processes.spawn(line, started);
    try {
      return { ...(await handle.wait()), command: line };
    } finally {
      this.processes.release(handle.pid);
    }
  }

  /** Writes files into the sandbox, whole or not at all. */
  override async writeFiles(files: SandboxFileInput[]): Promise<void> {
    await this.ensureRunning();
    await this.whileAlive(async (sandbox) => await sandbox.uploadFiles(files));
  }

  override getInfo(): SandboxInfo {
    const sandbox = this.#opened;
    return {
      id: this.id,
      name: this.name,
      provider: this.provider,
      status: this.status,
      createdAt: new Date(sandbox?.createdAt ?? Date.now()),
      ...(this.#lastUsedAt !== undefined && { lastUsedAt: this.#lastUsedAt }),
      ...(sandbox !== undefined && {
        metadata: { sandboxId: sandbox.id, backend: sandbox.backend, workingDirectory: sandbox.workDir },
      }),
    };
  }

  override getInstructions({ requestContext }: InstructionsRequest = {}): string {
    const place = this.#opened?.workDir ?? this.#options.workDir ?? "/workspace";
    const { network = "none" } = this.#options;
    const reach =
      network === "full" ? "" : network === "none" ? " There is no network." : " The network is restricted.";
    const usual = `Commands run in an isolated sandbox, by bash where there is one, else by /bin/sh, in ${place}.${reach}`;
    if (typeof this.#instructions !== "function") return this.#instructions ?? usual;
    return this.#instructions({ defaultInstructions: usual, ...(requestContext !== undefined && { requestContext }) });
  }

  /** A sandbox of its own with the same options, but for those given. It has checkpoints no more than this one. */
  clone({ id, sandboxId, env, workingDirectory, idleTimeoutMinutes }: SandboxCloneOptions = {}): GloveboxSandbox {
    const idleTimeout = idleTimeoutMinutes === undefined ? undefined : idleTimeoutMinutes * 60_000;
    const { name: _, id: __, ...open } = this.#options;
    return new GloveboxSandbox({
      ...(sandboxId === undefined && { ...open, ...defined({ workDir: workingDirectory, idleTimeout }) }),
      ...this.#hooks,
      ...defined({ id, sandboxId, env, timeout: this.timeout, instructions: this.#instructions }),
    });
  }

  /**
   * Works with the open sandbox. If it turns out to be gone (removed from outside, its connection lost), the kept one is opened again, or a new one if
   * it isn't kept any more, and the work is tried once more.
   */
  async whileAlive<T>(work: (sandbox: Sandbox) => Promise<T>): Promise<T> {
    this.#lastUsedAt = new Date();
    try {
      return await work(this.#alive());
    } catch (error) {
      if (!(error instanceof SandboxError && ["closed", "backend_lost"].includes(error.code))) throw error;
      if (this.status !== "running") throw error;
      this.logger.warn("The sandbox is gone; opening another", { code: error.code, sandbox: this.id });
      await this.#close();
      this.status = "stopped";
      await this.ensureRunning();
      return await work(this.#alive());
    }
  }

  #alive(): Sandbox {
    if (this.#opened === undefined) throw new mastra.SandboxNotReadyError(this.id);
    return this.#opened;
  }

  #isKept(): boolean {
    return this.#options.keep !== undefined && this.#options.keep !== false;
  }

  /** How to open the sandbox: as asked the first time, after that the kept one. */
  #reopenable(): OpenOptions {
    if (this.#keptId === undefined) return this.#options;
    const { env, onEvent, signal } = this.#options;
    return { id: this.#keptId, ...defined({ env, onEvent, signal }) };
  }

  async #close(): Promise<void> {
    const sandbox = this.#opened;
    this.#opened = undefined;
    if (sandbox === undefined) return;
    if (this.#isKept()) this.#keptId = sandbox.id;
    await sandbox.teardown();
  }

  async #portUrl(port: number): Promise<string | null> {
    const sandbox = this.#opened;
    return sandbox?.capabilities.ports === true ? await sandbox.url(port) : null;
  }
}

/** Mastra's files are all there after a stop. With `true`, a new sandbox keeps as many as the backend can. */
async function withWholeKeep({ keep, ...options }: OpenOptions): Promise<OpenOptions> {
  if (keep === undefined) return options;
  return { ...options, keep: keep === true && options.id === undefined ? await keepOf(options) : keep };
}
