import { SandboxError, toSandboxError } from "../../contracts/errors.js";
import type {
  Capabilities,
  Changes,
  ExecOptions,
  ExecResult,
  NetworkPolicy,
  NetworkWindow,
  ProcessHandle,
  SandboxProcess,
  SecretRule,
  SpawnOptions,
} from "../../contracts/types.js";
import { isoTime } from "../util/iso-time.js";
import { MAX_OUTPUT_BYTES } from "../util/sanitize.js";
import * as is from "../util/schema.js";
import { check, invalidArgument, type Schema } from "../util/schema.js";
import { reasonFor } from "./capabilities.js";
import { CallRunner, within } from "./portable/call-runner.js";
import { createEmit } from "./portable/events.js";
import { runToEnd } from "./portable/exec.js";
import { type LifetimeEnd, SandboxLifetime } from "./portable/lifetime.js";
import type { OpenSandboxState } from "./portable/open-sandbox-state.js";
import { toHandle } from "./portable/process-handle.js";
import { ProcessTable } from "./portable/process-table.js";
import { SandboxFileCalls } from "./portable/sandbox-file-calls.js";
import { openNetwork, setNetwork, setSecrets } from "./portable/sandbox-network.js";
import { SandboxPorts } from "./portable/sandbox-ports.js";
import { shareState } from "./portable/share-state.js";
import { restoreSnapshot, saveSnapshot, snapshotOptions } from "./portable/snapshots.js";
import { startProcess } from "./portable/spawned-process.js";
import type { TrackedProcess } from "./portable/tracked-process.js";
import {
  checkExecOptions,
  checkShellCall,
  checkSpawnOptions,
  type ProgramOptions,
  type ShellOptions,
  toExecOptions,
} from "./portable/validate.js";
import {
  DEFAULT_OPERATION_TIMEOUT,
  type Driver,
  type FileCalls,
  type PushOptions,
  type Sandbox,
  type SandboxOptions,
  type SnapshotOptions,
  type WaitForPortOptions,
} from "./types.js";

export { createEmit, redactError } from "./portable/events.js";

/** The options of a sandbox that the portable part needs. */
export interface PortableOptions
  extends Pick<
    SandboxOptions,
    | ("operationTimeout" | "maxOutput" | "env" | "allow" | "publish" | "onEvent" | "githubToken")
    | ("ttl" | "idleTimeout" | "paths")
  > {
  /** When it expires, ISO 8601. Default: `ttl` from now, or never. */
  expiresAt?: string | undefined;
}

const forkOptions: Schema<{ count?: number }> = is.object({ count: is.whole(1, 64) });
const pushOptions: Schema<PushOptions> = is.object({ message: is.text, server: is.text });

/** Who a sandbox is, besides its id. */
export interface SandboxIdentity {
  readonly name?: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  /** ISO 8601. */
  readonly createdAt: string;
}

/** What the portable part asks of whoever made a driver. */
export interface SandboxLife {
  /** Ends the sandbox, and removes everything that it has outside this process. An expired one is removed even if it is kept. */
  close(driver: Driver, isExpired: boolean): Promise<void>;
  /** Who it is, besides its id. */
  identify?(driver: Driver): SandboxIdentity | undefined;
  /** Throws if the network must not be this, for a while or for good. */
  checkNetwork?(network: unknown): Promise<void>;
  /** Called with each sandbox, forks included, once it can be used. */
  opened?(sandbox: Sandbox, driver: Driver): void;
}

/** Makes the sandbox that callers use from a driver. */
export function createSandbox(driver: Driver, opts: PortableOptions = {}, life: SandboxLife = CLOSE_ONLY): Sandbox {
  const sandbox = new PortableSandbox(driver, opts, life);
  life.opened?.(sandbox, driver);
  return sandbox;
}

/** A second handle to an open sandbox, which owns nothing; undefined if the sandbox is closed. */
export function shareSandbox(sandbox: Sandbox, { onEvent }: Pick<PortableOptions, "onEvent">): Sandbox | undefined {
  return sandbox instanceof PortableSandbox ? sandbox.share(onEvent) : undefined;
}

function filesOf(driver: Driver, paths: "workdir" | "sandbox"): FileCalls {
  if (paths === "workdir") return driver;
  if (driver.anywhere !== undefined && driver.capabilities.paths?.includes(paths) === true) return driver.anywhere;
  throw new SandboxError("unsupported", `The ${driver.backend} backend can't enforce paths ("${paths}")`);
}

const CLOSE_ONLY: SandboxLife = {
  async close(driver) {
    await (await driver.close())?.gone;
  },
};

class PortableSandbox extends SandboxFileCalls implements Sandbox {
  readonly id: string;
  declare readonly name?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly createdAt: string;
  readonly backend: string;
  readonly workDir: string;
  readonly hostDir?: string;
  readonly capabilities: Capabilities;
  readonly published: readonly number[];
  readonly #driver: Driver;
  readonly #opts: PortableOptions;
  readonly #state: OpenSandboxState;
  readonly #ports: SandboxPorts;
  readonly #calls: CallRunner;
  readonly #life: SandboxLife;
  readonly #isShared: boolean;
  readonly #lifetime: SandboxLifetime | undefined;
  #teardown: Promise<void> | undefined;

  /** With `owner`: a second handle to its sandbox. */
  constructor(driver: Driver, given: PortableOptions, life: SandboxLife, owner?: PortableSandbox) {
    const { ttl, expiresAt = ttl === undefined ? undefined : isoTime(Date.now() + ttl) } = given;
    const opts = { ...given, expiresAt };
    const env = { ...driver.baseEnv, ...opts.env };
    const hidden = { env, secrets: opts.githubToken === undefined ? [] : [opts.githubToken] };
    const emit = opts.onEvent && createEmit(driver, hidden, opts.onEvent);
    const { paths = "workdir" } = opts;
    const own = (): OpenSandboxState => ({
      driver,
      files: filesOf(driver, paths),
      paths,
      operationTimeout: opts.operationTimeout ?? DEFAULT_OPERATION_TIMEOUT,
      maxOutput: opts.maxOutput ?? MAX_OUTPUT_BYTES,
      env,
      hidden,
      allow: opts.allow === undefined ? undefined : new Set(opts.allow),
      emit,
      running: new Set(),
      processes: new ProcessTable(),
      calls: 0,
      cwd: driver.workDir,
      closed: false,
    });
    const state = owner === undefined ? own() : shareState(owner.#state, emit);
    const calls = new CallRunner(state, hidden);
    super(state, calls);
    const { name, labels = {}, createdAt = isoTime() } = life.identify?.(driver) ?? {};
    if (name !== undefined) this.name = name;
    this.labels = Object.freeze({ ...labels });
    this.createdAt = createdAt;
    this.id = driver.id;
    this.backend = driver.backend;
    this.workDir = driver.workDir;
    if (driver.hostDir !== undefined) this.hostDir = driver.hostDir;
    this.capabilities = driver.capabilities;
    this.published = [...new Set(opts.publish)];
    this.#driver = driver;
    this.#opts = opts;
    this.#life = life;
    this.#isShared = owner !== undefined;
    this.#state = state;
    this.#calls = calls;
    this.#ports = owner === undefined ? new SandboxPorts(state) : owner.#ports;
    if (owner !== undefined) return;
    driver.onLost = () => void this.#ports.close();
    this.#lifetime = this.#startLifetime(opts);
    driver.onWarning = (message) => this.#state.emit?.("warning", message);
    this.#state.emit?.("created", `sandbox ${driver.id} is ready in ${driver.workDir}`);
  }

  exec(opts: ExecOptions): Promise<ExecResult>;
  exec(program: string, args?: readonly string[], opts?: ProgramOptions): Promise<ExecResult>;
  async exec(first: ExecOptions | string, args?: readonly string[], rest?: ProgramOptions): Promise<ExecResult> {
    try {
      this.#assertOpen();
      const opts =
        typeof first === "string" || args !== undefined || rest !== undefined
          ? toExecOptions(first, args, rest)
          : first;
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

  processes(): Promise<ProcessHandle[]> {
    return this.#call("processes", async () => this.#state.processes.all().map((process) => this.#handle(process)));
  }

  process(id: string): Promise<ProcessHandle> {
    return this.#call("process", async () => {
      check(id, is.text, "id");
      return this.#handle(this.#state.processes.find(id));
    });
  }

  snapshot(opts: SnapshotOptions = {}): Promise<string> {
    const save = async (signal: AbortSignal): Promise<string> => {
      check(opts, snapshotOptions, "options");
      const id = await saveSnapshot(this.#state, opts, signal);
      this.#state.emit?.("snapshot", `snapshot ${id}`);
      return id;
    };
    return this.#call("snapshot", save, opts?.signal);
  }

  restore(idOrName: string): Promise<void> {
    return this.#call("restore", () => restoreSnapshot(this.#state, idOrName));
  }

  fork(): Promise<Sandbox>;
  fork(opts: { count: number }): Promise<Sandbox[]>;
  fork(opts: { count?: number } = {}): Promise<Sandbox | Sandbox[]> {
    return this.#call("fork", async (signal) => {
      check(opts, forkOptions, "options");
      if (this.#driver.fork === undefined) throw this.#unsupported(`fork${reasonFor("fork", this.capabilities)}`);
      const drivers = await this.#driver.fork(opts.count ?? 1);
      if (signal.aborted) {
        // The caller has given up on them, and nobody else would remove them.
        await Promise.all(drivers.map((driver) => createSandbox(driver, this.#opts, this.#life).teardown()));
        throw signal.reason;
      }
      const sandboxes = drivers.map((driver) => createSandbox(driver, this.#opts, this.#life));
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
    return this.#call("url", () => this.#ports.url(port));
  }

  waitForPort(port: number, opts: WaitForPortOptions = {}): Promise<void> {
    return this.#call("waitForPort", (signal) => this.#ports.waitForPort(port, opts, signal));
  }

  openNetwork(allow: readonly string[]): Promise<NetworkWindow> {
    return this.#call("openNetwork", () => openNetwork(this.#state, allow, this.#life));
  }

  setNetwork(network: Exclude<NetworkPolicy, "full">): Promise<void> {
    return this.#call("setNetwork", () => setNetwork(this.#state, network, this.#life, this.#opts.env));
  }

  setSecrets(secrets: Readonly<Record<string, SecretRule>>): Promise<void> {
    return this.#call("setSecrets", (signal) => setSecrets(this.#state, secrets, signal, this.#opts.env));
  }

  teardown(): Promise<void> {
    this.#teardown ??= this.#end();
    return this.#teardown;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.teardown();
  }

  /** A second handle; undefined once the sandbox is closed. */
  share(onEvent: PortableOptions["onEvent"]): Sandbox | undefined {
    if (this.#state.closed) return undefined;
    const { onEvent: _, ...opts } = this.#opts;
    return new PortableSandbox(this.#driver, onEvent ? { ...opts, onEvent } : opts, this.#life, this);
  }

  #startLifetime({ expiresAt, idleTimeout }: PortableOptions): SandboxLifetime | undefined {
    if (expiresAt === undefined && idleTimeout === undefined) return undefined;
    const { id } = this;
    const state = this.#state;
    const isBusy = (): boolean => state.calls > 0 || state.running.size > 0;
    const end = (ending: LifetimeEnd): void => {
      state.ending = ending;
      void this.teardown();
    };
    const lifetime = new SandboxLifetime({ id, expiresAt, idleTimeout, isBusy, end });
    if (idleTimeout !== undefined) state.onUsed = () => lifetime.touch();
    return lifetime;
  }

  async #end(): Promise<void> {
    this.#state.closed = true;
    if (this.#isShared) {
      const message = `This handle to the sandbox ${this.id} was torn down`;
      const hint = `the sandbox may still be open: openSandbox({ id: "${this.id}" }) gives another handle`;
      this.#state.ending ??= { message, hint, isExpired: false };
      return;
    }
    this.#state.processes.close();
    this.#lifetime?.close();
    const { message = "The sandbox was torn down while the command ran", isExpired = false } = this.#state.ending ?? {};
    const reason = { code: "closed", message } as const;
    try {
      await within(this.#state.operationTimeout, "teardown", async () => {
        await this.#ports.close();
        await Promise.all([...this.#state.running].map((process) => process.stop(reason)));
        await this.#life.close(this.#driver, isExpired);
      });
      this.#state.emit?.("teardown", this.#state.ending?.message ?? `sandbox ${this.id} is gone`);
    } catch (error) {
      // The next call tries again: a driver's close may be called until it succeeds.
      this.#teardown = undefined;
      this.#state.emit?.("leak", `sandbox ${this.id} could not be removed: ${toSandboxError(error).message}`);
    }
  }

  #call<T>(operation: string, work: (signal: AbortSignal) => Promise<T>, given?: AbortSignal): Promise<T> {
    return this.#calls.run(operation, work, given);
  }

  #handle(process: TrackedProcess): ProcessHandle {
    return toHandle(this.#state, process, async (operation, work) => {
      try {
        this.#assertOpen();
        return await work();
      } catch (error) {
        throw this.#failure(error, operation);
      }
    });
  }

  #assertOpen(): void {
    this.#calls.assertOpen();
  }

  #failure(error: unknown, operation: string): SandboxError {
    return this.#calls.failure(error, operation);
  }

  #unsupported(operation: string): SandboxError {
    return new SandboxError("unsupported", `The ${this.backend} backend has no ${operation}`);
  }
}
