import type { DriverConnection } from "../../../../contracts/driver.js";
import { SandboxError } from "../../../../contracts/errors.js";
import type { Capabilities, Changes } from "../../../../contracts/types.js";
import {
  connectInside,
  cwdFor,
  errorFor,
  type FileStream,
  type GuestChannel,
  GuestFailure,
  GuestFileCalls,
  GuestFiles,
  pathBeneath,
  startCommand,
  waitForPortInside,
} from "../../guest.js";
import type { Driver, DriverProcess, StartSpec } from "../../types.js";
import { endingAs } from "./process-end.js";
import type { SpawnedServices } from "./spawned-services.js";
import type { Lease, Steps } from "./steps.js";

/** What a Dagger driver is made of. */
export interface DaggerParts {
  id: string;
  workDir: string;
  capabilities: Capabilities;
  baseEnv: Readonly<Record<string, string>>;
  steps: Steps;
  services: SpawnedServices;
  /** Operations on the sandbox as a whole. */
  operations(driver: DaggerDriver): Pick<Driver, "snapshot" | "restore" | "fork" | "changes" | "git" | "url">;
  /** Frees everything, once nothing runs any more. */
  close(driver: DaggerDriver): Promise<void>;
}

/** The Dagger driver: each operation is a step of the graph, done by the guest in it. */
export class DaggerDriver extends GuestFileCalls implements Driver {
  readonly backend = "dagger";
  readonly id: string;
  readonly workDir: string;
  readonly capabilities: Capabilities;
  readonly baseEnv: Readonly<Record<string, string>>;
  readonly steps: Steps;
  readonly startsServices = true;
  onWarning?: (message: string) => void;
  declare readonly snapshot?: () => Promise<string>;
  declare readonly restore?: (id: string) => Promise<void>;
  declare readonly fork?: (count: number) => Promise<Driver[]>;
  declare readonly changes?: () => Promise<Changes>;
  declare readonly git?: NonNullable<Driver["git"]>;
  declare readonly url?: (port: number) => Promise<string | undefined>;
  readonly #services: SpawnedServices;
  readonly #close: DaggerParts["close"];

  constructor(parts: DaggerParts) {
    super();
    this.id = parts.id;
    this.workDir = parts.workDir;
    this.capabilities = parts.capabilities;
    this.baseEnv = parts.baseEnv;
    this.steps = parts.steps;
    this.#services = parts.services;
    this.#close = parts.close;
    Object.assign(this, parts.operations(this));
  }

  async start(spec: StartSpec): Promise<DriverProcess> {
    const { service } = spec;
    if (service !== undefined) {
      return await this.#services.start(this.steps, { ...spec, service }, cwdFor(this.workDir, spec));
    }
    const { channel, release } = await this.steps.acquire(true);
    try {
      const process = await startCommand(channel, spec, cwdFor(this.workDir, spec));
      return endingWith(process, release);
    } catch (error) {
      await release().catch(() => undefined);
      throw error instanceof GuestFailure ? errorFor(error.number, spec.cwd) : error;
    }
  }

  protected override useFiles<T>(isChange: boolean, work: (files: GuestFiles) => Promise<T>): Promise<T> {
    return this.steps.use(isChange, (channel) => work(this.#filesOf(channel)));
  }

  protected override async useStream(work: (files: GuestFiles) => Promise<FileStream>): Promise<FileStream> {
    const { channel, release } = await this.steps.acquire(false);
    try {
      const source = await work(this.#filesOf(channel));
      if (source !== null) return releasing(source, release);
    } catch (error) {
      await release().catch(() => undefined);
      throw error;
    }
    await release();
    return null;
  }

  protected override async *streamFiles(
    work: (files: GuestFiles) => AsyncIterable<Uint8Array>,
  ): AsyncGenerator<Uint8Array> {
    const { channel, release } = await this.steps.acquire(false);
    try {
      yield* work(this.#filesOf(channel));
    } finally {
      await release();
    }
  }

  async connect(port: number, signal: AbortSignal): Promise<DriverConnection> {
    const running = await this.steps.acquireRunning();
    if (running === undefined) throw new SandboxError("unavailable", `Nobody listens on port ${port}: nothing runs`);
    try {
      const connection = await connectInside(running.channel, port, signal);
      void connection.ended().then(() => running.release().catch(() => undefined));
      return connection;
    } catch (error) {
      await running.release().catch(() => undefined);
      throw error;
    }
  }

  async waitForPort(port: number, timeout: number, signal: AbortSignal): Promise<boolean> {
    // A service has started once its ports answer.
    if ([...this.#services.running.values()].some(({ ports }) => ports.includes(port))) return true;
    return await this.steps.use(false, (channel) => waitForPortInside(channel, port, timeout, signal));
  }

  async close(): Promise<void> {
    await this.#close(this);
  }

  #filesOf(channel: GuestChannel): GuestFiles {
    return new GuestFiles(channel, (path) => this.#relative(path));
  }

  #relative(path: string): string {
    return pathBeneath(this.workDir, path);
  }
}

/** The same stream, which uses a step until it has ended. */
function releasing(source: AsyncIterable<Uint8Array>, release: Lease["release"]): AsyncIterable<Uint8Array> {
  const iterator = source[Symbol.asyncIterator]();
  const ended = async (result: IteratorResult<Uint8Array>): Promise<IteratorResult<Uint8Array>> => {
    if (result.done === true) await release();
    return result;
  };
  const failed = async (error: unknown): Promise<never> => {
    await release().catch(() => undefined);
    throw error;
  };
  const stop = async (): Promise<IteratorResult<Uint8Array>> => ({ done: true, value: undefined });
  return {
    [Symbol.asyncIterator]: () => ({
      next: () => iterator.next().then(ended, failed),
      return: () => (iterator.return?.() ?? stop()).then(ended, failed),
    }),
  };
}

/** A process that has ended once its changes are in the graph. After a kill nobody waits for that: a failure then shows in the next call. */
function endingWith(process: DriverProcess, release: Lease["release"]): DriverProcess {
  let isKilled = false;
  const ended = process.wait().then(
    async (exit) => {
      await release(!isKilled);
      return exit;
    },
    async (error: unknown) => {
      await release().catch(() => undefined);
      throw error;
    },
  );
  ended.catch(() => undefined);
  return endingAs(process, ended, (signal) => {
    isKilled ||= signal === "SIGKILL";
  });
}
