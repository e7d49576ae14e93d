import type { Capabilities, Changes, FileStat } from "../../../../contracts/types.js";
import { errorFor, GuestFailure, GuestFiles, startCommand } from "../../guest.js";
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
export class DaggerDriver implements Driver {
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
  declare readonly url?: (port: number) => Promise<string>;
  readonly #services: SpawnedServices;
  readonly #close: DaggerParts["close"];

  constructor(parts: DaggerParts) {
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
      return await this.#services.start(this.steps, { ...spec, service }, this.#relative(spec.cwd));
    }
    const { channel, release } = await this.steps.acquire(true);
    try {
      const process = await startCommand(channel, spec, this.#relative(spec.cwd));
      return endingWith(process, release);
    } catch (error) {
      await release().catch(() => undefined);
      throw error instanceof GuestFailure ? errorFor(error.number, spec.cwd) : error;
    }
  }

  read(path: string): Promise<Uint8Array | null> {
    return this.#files(false, (files) => files.read(path));
  }

  write(all: readonly { path: string; content: Uint8Array; mode: number }[]): Promise<void> {
    return this.#files(true, async (files) => {
      for (const { path, content, mode } of all) await files.write(path, content, mode);
    });
  }

  stat(path: string): Promise<FileStat | null> {
    return this.#files(false, (files) => files.stat(path));
  }

  list(path: string): Promise<string[]> {
    return this.#files(false, (files) => files.list(path));
  }

  remove(path: string, opts: { recursive: boolean }): Promise<boolean> {
    return this.#files(true, (files) => files.remove(path, opts.recursive));
  }

  rename(from: string, to: string): Promise<void> {
    return this.#files(true, (files) => files.rename(from, to));
  }

  makeDirectory(path: string): Promise<void> {
    return this.#files(true, (files) => files.makeDirectory(path));
  }

  importTree(tar: AsyncIterable<Uint8Array>, path: string): Promise<void> {
    return this.#files(true, (files) => files.importTree(tar, path));
  }

  async *exportTree(path: string): AsyncGenerator<Uint8Array> {
    const { channel, release } = await this.steps.acquire(false);
    try {
      yield* new GuestFiles(channel, (name) => this.#relative(name)).exportTree(path);
    } finally {
      await release();
    }
  }

  async close(): Promise<void> {
    await this.#close(this);
  }

  #files<T>(isChange: boolean, work: (files: GuestFiles) => Promise<T>): Promise<T> {
    return this.steps.use(isChange, (channel) => work(new GuestFiles(channel, (path) => this.#relative(path))));
  }

  #relative(path: string): string {
    return path === this.workDir ? "" : path.slice(this.workDir.length + 1);
  }
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
