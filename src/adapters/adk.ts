import type {
  CodeExecutionResult,
  BaseCodeExecutor as CodeExecutor,
  BaseEnvironment as Environment,
  ExecuteCodeParams,
  ExecutionResult,
} from "@google/adk";
import type { Sandbox } from "../../contracts/sandbox.js";
import type { DirectoryEntry } from "../../contracts/types.js";
import type { OpenOptions } from "../sandbox.js";
import { MAX_TIMEOUT } from "../util/schema.js";
import { importFramework } from "./import-framework.js";
import { openForAgent } from "./open-for-agent.js";
import { deadlineLine, runCommand, shellOf } from "./run-command.js";

const framework = await importFramework("@google/adk", () => import("@google/adk"));
const BaseEnvironment: typeof Environment = framework.BaseEnvironment;
const BaseCodeExecutor: typeof CodeExecutor = framework.BaseCodeExecutor;

/** The sandbox to use: one of yours as `sandbox`, or the options to open one with. */
export interface AdkOptions extends OpenOptions {
  /** A sandbox that is open already. `close` leaves it open. Excludes the options that open one. */
  sandbox?: Sandbox;
}

/** An environment of ADK in a sandbox. */
export class GloveboxEnvironment extends BaseEnvironment {
  readonly #options: AdkOptions;
  #opening: Promise<Sandbox> | undefined;
  #sandbox: Sandbox | undefined;

  constructor(options: AdkOptions = {}) {
    super();
    this.#options = options;
  }

  /** Opens the sandbox. A second call does nothing. */
  override async initialize(): Promise<void> {
    const { sandbox, ...options } = this.#options;
    this.#opening ??= sandbox === undefined ? openForAgent(options) : Promise.resolve(sandbox);
    const opening = this.#opening;
    try {
      const opened = await opening;
      // It may have been closed in the meantime.
      if (this.#opening !== opening) return;
      this.#sandbox = opened;
      this.initialized = true;
    } catch (error) {
      if (this.#opening === opening) this.#opening = undefined;
      throw error;
    }
  }

  /** Closes the sandbox, unless it was given. One with `keep` can be reopened by its id. */
  override async close(): Promise<void> {
    const opening = this.#opening;
    this.initialized = false;
    this.#sandbox = undefined;
    this.#opening = undefined;
    const sandbox = await opening?.catch(() => undefined);
    if (sandbox !== this.#options.sandbox) await sandbox?.teardown();
  }

  /** The sandbox itself, for everything that ADK does not know: its id, snapshots, forks, ports. */
  get sandbox(): Sandbox {
    this.assertInitialized();
    return this.#sandbox as Sandbox;
  }

  /** Where commands start. */
  override get workingDir(): string {
    return this.sandbox.workDir;
  }

  /** Runs a command, without a deadline unless one is given. */
  override async execute(command: string, timeoutSeconds?: number): Promise<ExecutionResult> {
    const timeout = timeoutSeconds === undefined ? MAX_TIMEOUT : Math.ceil(timeoutSeconds * 1000);
    const { exitCode, stdout, stderr, timedOut } = await runCommand(this.sandbox, command, { timeout });
    return { exitCode, stdout, stderr, timedOut };
  }

  /** Reads a file. A missing one is an error with the code `ENOENT`. */
  override async readFile(filePath: string): Promise<Uint8Array> {
    const bytes = await this.sandbox.readBytes(filePath);
    if (bytes !== null) return bytes;
    const message = `ENOENT: no such file or directory, open '${filePath}'`;
    throw Object.assign(new Error(message), { code: "ENOENT" });
  }

  /** Writes a file, and makes its directories. */
  override async writeFile(filePath: string, content: string | Uint8Array): Promise<void> {
    await this.sandbox.writeFile(filePath, content);
  }
}

/** Options of `GloveboxCodeExecutor`. */
export interface CodeExecutorOptions extends AdkOptions {
  /** Deadline of one execution in seconds. Default 300, as in ADK's own executors. */
  timeoutSeconds?: number;
}

/** How each language reads a program from its standard input, and arguments after it. `sh` is bash where the sandbox has it. */
const PROGRAMS: Readonly<Record<string, readonly [string, ...string[]]>> = {
  python: ["python3", "-"],
  javascript: ["node", "-"],
  shell: ["sh", "-s", "--"],
};
/** What ADK shows of an output depends on its type. */
const TYPES: Readonly<Record<string, string>> = {
  ...{ csv: "text/csv", html: "text/html", json: "application/json", md: "text/markdown", txt: "text/plain" },
  ...{ jpg: "image/jpeg", pdf: "application/pdf", png: "image/png", svg: "image/svg+xml" },
};
/** The largest file that is returned as an output. */
const MAX_OUTPUT_FILE = 10 * 1024 * 1024;

/** Runs the code that a model writes in a sandbox. Every session has its own, unless you give one. */
export class GloveboxCodeExecutor extends BaseCodeExecutor {
  readonly #options: CodeExecutorOptions;
  readonly #sandboxes = new Map<string, Promise<Sandbox>>();

  constructor(options: CodeExecutorOptions = {}) {
    super();
    this.#options = options;
  }

  /** Runs code in the work directory. Files that are new or changed there afterwards are its outputs. */
  override async executeCode({
    invocationContext,
    codeExecutionInput,
  }: ExecuteCodeParams): Promise<CodeExecutionResult> {
    const { code, language, inputFiles = [], args = [] } = codeExecutionInput;
    const program = PROGRAMS[language === "unspecified" ? "python" : language];
    if (program === undefined) return { stdout: "", stderr: `Unsupported language: ${language}`, outputFiles: [] };
    const sandbox = await this.#sandboxOf(invocationContext);
    const inputs = inputFiles.map(({ name, content, contentEncoding }) => {
      return [name, Buffer.from(content, contentEncoding === "utf-8" ? "utf8" : "base64")] as const;
    });
    await sandbox.writeFiles(Object.fromEntries(inputs));
    const before = await filesOf(sandbox);
    const { timeoutSeconds = 300 } = this.#options;
    const [name, ...rest] = program;
    const argv = [name === "sh" ? await shellOf(sandbox) : name, ...rest, ...toArguments(args)];
    const result = await sandbox.exec({ argv, stdin: code, timeout: Math.ceil(timeoutSeconds * 1000) });
    const after = await filesOf(sandbox);
    const changed = after.filter(({ name, size, mtimeMs }) => {
      return !before.some((each) => each.name === name && each.size === size && each.mtimeMs === mtimeMs);
    });
    const outputFiles = await Promise.all(changed.map(async ({ name }) => await toOutput(sandbox, name)));
    const { stdout, stderr, exitCode, timedOut } = result;
    // Without a word on stderr, ADK takes it for a success.
    const end = timedOut ? deadlineLine(result) : exitCode !== 0 && stderr === "" ? `Exit code ${exitCode}` : "";
    return { stdout, stderr: `${stderr}${end}`, outputFiles };
  }

  /** Closes the sandboxes of all sessions. */
  async close(): Promise<void> {
    const opened = [...this.#sandboxes.values()];
    this.#sandboxes.clear();
    await Promise.all(opened.map(async (each) => await (await each.catch(() => undefined))?.teardown()));
  }

  async #sandboxOf({ session }: ExecuteCodeParams["invocationContext"]): Promise<Sandbox> {
    const { sandbox, timeoutSeconds: _, ...options } = this.#options;
    if (sandbox !== undefined) return sandbox;
    const key = JSON.stringify([session.appName, session.userId, session.id]);
    const known = this.#sandboxes.get(key);
    if (known !== undefined) return await known;
    const opening = openForAgent(options);
    this.#sandboxes.set(key, opening);
    opening.catch(() => this.#sandboxes.delete(key));
    return await opening;
  }
}

function toArguments(args: string[] | Record<string, string | number | boolean>): string[] {
  if (Array.isArray(args)) return args;
  return Object.entries(args).flatMap(([name, value]) => [`--${name}`, String(value)]);
}

async function filesOf(sandbox: Sandbox): Promise<DirectoryEntry[]> {
  const entries = await sandbox.listDirectory(".", { details: true });
  return entries.filter(({ type, size }) => type === "file" && size <= MAX_OUTPUT_FILE);
}

async function toOutput(sandbox: Sandbox, name: string): Promise<CodeExecutionResult["outputFiles"][number]> {
  const bytes = (await sandbox.readBytes(name)) ?? new Uint8Array();
  const mimeType = TYPES[name.split(".").at(-1) ?? ""] ?? "application/octet-stream";
  return { name, content: Buffer.from(bytes).toString("base64"), mimeType };
}
