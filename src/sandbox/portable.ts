import { SandboxError, toSandboxError } from "../../contracts/errors.js";
import type {
  Capabilities,
  Changes,
  ExecOptions,
  ExecResult,
  FileStat,
  ProcessInfo,
  SandboxProcess,
  SpawnOptions,
} from "../../contracts/types.js";
import { MAX_OUTPUT_BYTES } from "../util/sanitize.js";
import * as is from "../util/schema.js";
import { check, invalidArgument, type Schema } from "../util/schema.js";
import { assertCapabilities } from "./capabilities.js";
import { createEmit, redactError, type Secrets } from "./portable/events.js";
import { runToEnd } from "./portable/exec.js";
import * as files from "./portable/files.js";
import type { OpenSandboxState } from "./portable/open-sandbox-state.js";
import { startProcess } from "./portable/spawned-process.js";
import { exportDirectory, refreshFromHost } from "./portable/transfer.js";
import { checkExecOptions, checkShellCall, checkSpawnOptions, type ShellOptions } from "./portable/validate.js";
import {
  DEFAULT_OPERATION_TIMEOUT,
  type Driver,
  type FileUpload,
  type PushOptions,
  type Sandbox,
  type SandboxOptions,
} from "./types.js";

export { redactError } from "./portable/events.js";

/** The options of a sandbox that the portable part needs. */
export type PortableOptions = Pick<
  SandboxOptions,
  "operationTimeout" | "maxOutput" | "env" | "allow" | "onEvent" | "githubToken"
>;

const forkOptions: Schema<{ count?: number }> = is.object({ count: is.whole(1, 64) });
const pushOptions: Schema<PushOptions> = is.object({ message: is.text, server: is.text });

/** Makes the sandbox that callers use from a driver. `close` ends it and removes everything it has outside this process. */
export function createSandbox(
  driver: Driver,
  opts: PortableOptions = {},
  close: (driver: Driver) => Promise<void> = closeOnly,
): Sandbox {
  return new PortableSandbox(driver, opts, close);
}

async function closeOnly(driver: Driver): Promise<void> {
  await (await driver.close())?.gone;
}

class PortableSandbox implements Sandbox {
  readonly id: string;
  readonly backend: string;
  readonly workDir: string;
  readonly capabilities: Capabilities;
  readonly #driver: Driver;
  readonly #opts: PortableOptions;
  readonly #state: OpenSandboxState;
  readonly #hidden: Secrets;
  readonly #close: (driver: Driver) => Promise<void>;
  #teardown: Promise<void> | undefined;

  constructor(driver: Driver, opts: PortableOptions, close: (driver: Driver) => Promise<void>) {
    this.id = driver.id;
    this.backend = driver.backend;
    this.workDir = driver.workDir;
    this.capabilities = driver.capabilities;
    this.#driver = driver;
    this.#opts = opts;
    this.#close = close;
    const env = { ...driver.baseEnv, ...opts.env };
    this.#hidden = { env, secrets: opts.githubToken === undefined ? [] : [opts.githubToken] };
    this.#state = {
      driver,
      operationTimeout: opts.operationTimeout ?? DEFAULT_OPERATION_TIMEOUT,
      maxOutput: opts.maxOutput ?? MAX_OUTPUT_BYTES,
      env,
      allow: opts.allow === undefined ? undefined : new Set(opts.allow),
      emit: opts.onEvent && createEmit(driver, this.#hidden, opts.onEvent),
      running: new Set(),
      processes: new Map(),
      cwd: driver.workDir,
      closed: false,
    };
    driver.onWarning = (message) => this.#state.emit?.("warning", message);
    this.#state.emit?.("created", `sandbox ${driver.id} is ready in ${driver.workDir}`);
  }

  async exec(opts: ExecOptions): Promise<ExecResult> {
    try {
      this.#assertOpen();
      checkExecOptions(opts);
      return await runToEnd(this.#state, opts, "exec");
    } catch (error) {
      throw this.#failure(error, "exec");
    }
  }

  async shell(script: string, opts: ShellOptions = {}): Promise<ExecResult> {
    try {
      this.#assertOpen();
      checkShellCall(script, opts);
      const { shellPath = "/bin/sh", ...rest } = opts;
      // A script that starts like an option would be parsed as one.
      const argv = /^[-+]/.test(script) ? [shellPath, "-c", "--", script] : [shellPath, "-c", script];
      return await runToEnd(this.#state, { ...rest, argv }, "shell");
    } catch (error) {
      throw this.#failure(error, "shell");
    }
  }

  async spawn(opts: SpawnOptions): Promise<SandboxProcess> {
    try {
      this.#assertOpen();
      checkSpawnOptions(opts);
      return await startProcess(this.#state, opts);
    } catch (error) {
      throw this.#failure(error, "spawn");
    }
  }

  processes(): Promise<ProcessInfo[]> {
    const copy = (): ProcessInfo[] => [...this.#state.processes.values()].map((p) => ({ ...p, argv: [...p.argv] }));
    return this.#call("processes", async () => copy());
  }

  uploadFiles(uploads: readonly FileUpload[]): Promise<void> {
    return this.#call("uploadFiles", () => files.uploadFiles(this.#state, uploads));
  }

  writeFile(path: string, content: string | Uint8Array, opts: { mode?: number } = {}): Promise<void> {
    return this.#call("writeFile", () => files.writeFile(this.#state, path, content, opts));
  }

  writeFiles(contents: Readonly<Record<string, string | Uint8Array>>): Promise<void> {
    return this.#call("writeFiles", () => files.writeFiles(this.#state, contents));
  }

  readFile(path: string): Promise<string | null> {
    return this.#call("readFile", () => files.readFile(this.#state, path));
  }

  readBytes(path: string): Promise<Uint8Array | null> {
    return this.#call("readBytes", () => files.readBytes(this.#state, path));
  }

  stat(path: string): Promise<FileStat | null> {
    return this.#call("stat", () => files.stat(this.#state, path));
  }

  listDirectory(path = "."): Promise<string[]> {
    return this.#call("listDirectory", () => files.listDirectory(this.#state, path));
  }

  deleteFile(path: string): Promise<boolean> {
    return this.#call("deleteFile", () => files.deleteFile(this.#state, path));
  }

  makeDirectory(path: string): Promise<void> {
    return this.#call("makeDirectory", () => files.makeDirectory(this.#state, path));
  }

  setWorkdir(path: string): Promise<void> {
    return this.#call("setWorkdir", () => files.setWorkdir(this.#state, path));
  }

  exportDirectory(sandboxPath: string, hostPath: string): Promise<string> {
    return this.#call("exportDirectory", (signal) => exportDirectory(this.#state, sandboxPath, hostPath, signal));
  }

  refreshFromHost(hostPath: string, sandboxPath: string): Promise<void> {
    return this.#call("refreshFromHost", (signal) => refreshFromHost(this.#state, hostPath, sandboxPath, signal));
  }

  snapshot(): Promise<string> {
    return this.#call("snapshot", async (signal) => {
      if (this.#driver.snapshot === undefined) throw this.#unsupported("snapshot");
      const id = await this.#driver.snapshot(signal);
      this.#state.emit?.("snapshot", `snapshot ${id}`);
      return id;
    });
  }

  restore(id: string): Promise<void> {
    return this.#call("restore", async () => {
      check(id, is.text, "id");
      if (this.#driver.restore === undefined) throw this.#unsupported("restore");
      await this.#driver.restore(id);
    });
  }

  fork(): Promise<Sandbox>;
  fork(opts: { count: number }): Promise<Sandbox[]>;
  fork(opts: { count?: number } = {}): Promise<Sandbox | Sandbox[]> {
    return this.#call("fork", async (signal) => {
      check(opts, forkOptions, "options");
      if (this.#driver.fork === undefined) throw this.#unsupported("fork");
      const drivers = await this.#driver.fork(opts.count ?? 1);
      if (signal.aborted) {
        // The caller has given up on them, and nobody else would remove them.
        await Promise.all(drivers.map((driver) => createSandbox(driver, this.#opts, this.#close).teardown()));
        throw signal.reason;
      }
      const sandboxes = drivers.map((driver) => createSandbox(driver, this.#opts, this.#close));
      if (opts.count !== undefined) return sandboxes;
      const [only] = sandboxes;
      if (only === undefined) throw new SandboxError("internal", "The driver forked nothing");
      return only;
    });
  }

  changes(): Promise<Changes> {
    return this.#call("changes", async () => {
      if (this.#driver.changes === undefined) throw this.#unsupported("changes");
      return this.#driver.changes();
    });
  }

  pushBranch(branch: string, token: string, opts: PushOptions = {}): Promise<{ pushed: boolean; error?: string }> {
    return this.#call("pushBranch", async () => {
      check(branch, is.text, "branch");
      if (typeof token !== "string" || token === "") throw invalidArgument("token", "a non-empty string", typeof token);
      check(opts, pushOptions, "options");
      if (this.#driver.git === undefined) throw this.#unsupported("pushBranch without a repository");
      return this.#driver.git.pushBranch(branch, token, opts);
    });
  }

  defaultBranch(): Promise<string> {
    return this.#call("defaultBranch", async () => {
      if (this.#driver.git === undefined) throw this.#unsupported("defaultBranch without a repository");
      return this.#driver.git.defaultBranch();
    });
  }

  url(port: number): Promise<string> {
    return this.#call("url", async () => {
      check(port, is.port, "port");
      assertCapabilities({ ports: port }, this.capabilities, this.backend);
      if (this.#driver.url === undefined) throw this.#unsupported("url");
      return this.#driver.url(port);
    });
  }

  teardown(): Promise<void> {
    this.#teardown ??= this.#end();
    return this.#teardown;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.teardown();
  }

  async #end(): Promise<void> {
    this.#state.closed = true;
    const reason = { code: "closed", message: "The sandbox was torn down while the command ran" } as const;
    try {
      await within(this.#state.operationTimeout, "teardown", async () => {
        await Promise.all([...this.#state.running].map((process) => process.stop(reason)));
        await this.#close(this.#driver);
      });
      this.#state.emit?.("teardown", `sandbox ${this.id} is gone`);
    } catch (error) {
      // The next call tries again: a driver's close may be called until it succeeds.
      this.#teardown = undefined;
      this.#state.emit?.("leak", `sandbox ${this.id} could not be removed: ${toSandboxError(error).message}`);
    }
  }

  async #call<T>(operation: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    try {
      this.#assertOpen();
      return await within(this.#state.operationTimeout, operation, work);
    } catch (error) {
      throw this.#failure(error, operation);
    }
  }

  #assertOpen(): void {
    if (this.#state.closed) throw new SandboxError("closed", `The sandbox ${this.id} was torn down`);
  }

  #failure(error: unknown, operation: string): SandboxError {
    return redactError(toSandboxError(error, { backend: this.backend, operation }), this.#hidden);
  }

  #unsupported(operation: string): SandboxError {
    return new SandboxError("unsupported", `The ${this.backend} backend has no ${operation}`);
  }
}

/** Enforces the deadline of an operation. The signal is aborted when the caller has given up. */
async function within<T>(ms: number, operation: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const expired = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const error = new SandboxError("unavailable", `${operation} did not finish within ${ms} ms`);
      controller.abort(error);
      reject(error);
    }, ms);
  });
  try {
    return await Promise.race([work(controller.signal), expired]);
  } finally {
    clearTimeout(timer);
  }
}
