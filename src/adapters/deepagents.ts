import type {
  BaseSandbox as Base,
  ExecuteResponse,
  FileDownloadResponse,
  FileOperationError,
  FileUploadResponse,
} from "deepagents";
import { SandboxError, type SandboxErrorCode } from "../../contracts/errors.js";
import type { Sandbox } from "../../contracts/sandbox.js";
import type { OpenOptions } from "../sandbox.js";
import { importFramework } from "./import-framework.js";
import { openForAgent } from "./open-for-agent.js";
import { runMerged } from "./run-command.js";

const framework = await importFramework("deepagents", () => import("deepagents"));
const BaseSandbox: typeof Base = framework.BaseSandbox;
// deepagents hands no signal to its backends; LangChain knows that of the run.
const runs = await import("@langchain/core/singletons").catch(() => undefined);

/** The sandbox to use: one of yours as `sandbox`, or the options to open one with. */
export interface GloveboxSandboxOptions extends OpenOptions {
  /** A sandbox that is open already. `close` leaves it open. Excludes the options that open one. */
  sandbox?: Sandbox;
  /** Deadline of one command in milliseconds: deepagents has none. Default: the sandbox's `operationTimeout`, 10 minutes. */
  timeout?: number;
  /** Files to write before the first command, by path. */
  initialFiles?: Readonly<Record<string, string>>;
}

/** What deepagents calls what went wrong with one file. Everything else is thrown. */
const FILE_ERRORS: Readonly<Partial<Record<SandboxErrorCode, FileOperationError>>> = {
  not_found: "file_not_found",
  not_regular_file: "is_directory",
  permission_denied: "permission_denied",
  path_confinement: "invalid_path",
  invalid_path: "invalid_path",
  invalid_argument: "invalid_path",
  conflict: "invalid_path",
};

/** A backend for `createDeepAgent`: the agent's files and commands are in a sandbox. */
export class GloveboxSandbox extends BaseSandbox {
  readonly #options: GloveboxSandboxOptions;
  #sandbox: Sandbox | undefined;
  #id = "";
  #isOpening = false;

  constructor(options: GloveboxSandboxOptions = {}) {
    super();
    this.#options = options;
    this.#sandbox = options.sandbox;
    this.#id = options.sandbox?.id ?? "";
  }

  /** Opens a sandbox and makes a backend of it. */
  static async create(options: GloveboxSandboxOptions = {}): Promise<GloveboxSandbox> {
    const backend = new GloveboxSandbox(options);
    if (options.sandbox === undefined) await backend.initialize();
    return backend;
  }

  /** Its id; `create({ id })` reopens a kept sandbox by it. Empty until it is open. */
  get id(): string {
    return this.#id;
  }

  /** Whether it is open. */
  get isRunning(): boolean {
    return this.#sandbox !== undefined;
  }

  /** The sandbox itself, for everything that deepagents does not know: snapshots, forks, ports. */
  get sandbox(): Sandbox {
    if (this.#sandbox === undefined) {
      throw new framework.SandboxError(
        "The sandbox is not open: call initialize(), or use create()",
        "NOT_INITIALIZED",
      );
    }
    return this.#sandbox;
  }

  /** Opens the sandbox. `create` does this. */
  async initialize(): Promise<void> {
    if (this.#isOpening || this.#sandbox !== undefined) {
      throw new framework.SandboxError("The sandbox is open already", "ALREADY_INITIALIZED");
    }
    this.#isOpening = true;
    try {
      this.#sandbox = await openWithFiles(this.#options);
      this.#id = this.#sandbox.id;
    } finally {
      this.#isOpening = false;
    }
  }

  /** Closes the sandbox, unless it was given. One with `keep` can be reopened by its id. */
  async close(): Promise<void> {
    const sandbox = this.#sandbox;
    this.#sandbox = undefined;
    if (sandbox !== this.#options.sandbox) await sandbox?.teardown();
  }

  /**
   * Runs a command. Both outputs are one text. One that its deadline ends has exit code 137 and a last line that says so; one that is running when
   * the agent is aborted is killed.
   */
  override async execute(command: string): Promise<ExecuteResponse> {
    const { timeout } = this.#options;
    const signal = runs?.AsyncLocalStorageProviderSingleton.getRunnableConfig()?.signal;
    return await runMerged(this.sandbox, command, { signal, ...(timeout !== undefined && { timeout }) });
  }

  /** Writes files. Each has its own result. */
  override async uploadFiles(files: [string, Uint8Array][]): Promise<FileUploadResponse[]> {
    const { sandbox } = this;
    const results: FileUploadResponse[] = [];
    for (const [path, content] of files) {
      const error = await sandbox.writeFile(path, content).then(() => null, fileError);
      results.push({ path, error });
    }
    return results;
  }

  /** Reads files. Each has its own result. */
  override async downloadFiles(paths: string[]): Promise<FileDownloadResponse[]> {
    const { sandbox } = this;
    return await Promise.all(
      paths.map(async (path) => {
        const found = await sandbox.readBytes(path).catch(fileError);
        if (found === null) return { path, content: null, error: "file_not_found" as const };
        return typeof found === "string"
          ? { path, content: null, error: found }
          : { path, content: found, error: null };
      }),
    );
  }
}

async function openWithFiles(all: GloveboxSandboxOptions): Promise<Sandbox> {
  const { sandbox: _, timeout: __, initialFiles = {}, ...options } = all;
  const sandbox = await openForAgent(options);
  try {
    await sandbox.writeFiles(initialFiles);
    return sandbox;
  } catch (error) {
    await sandbox.teardown();
    throw error;
  }
}

function fileError(error: unknown): FileOperationError {
  const word = error instanceof SandboxError ? FILE_ERRORS[error.code] : undefined;
  if (word === undefined) throw error;
  return word;
}
