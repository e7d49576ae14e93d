import type { PendingRemoval } from "../../../contracts/driver.js";
import { SandboxError } from "../../../contracts/errors.js";
import type { Capabilities, FileStat } from "../../../contracts/types.js";
import type { Driver, DriverProcess, StartSpec } from "../types.js";
import type { GuestChannel } from "./channel.js";
import { errorFor, GuestFailure, NO_USER } from "./failure.js";
import { GuestFiles } from "./guest-files.js";
import { type GuestCommand, startCommand } from "./guest-process.js";
import { freeze, thaw } from "./listener.js";

const AT_ONCE = 64;
const SMALL = 64 << 10;

/** The identity of a driver and what it enforces. */
export interface DriverIdentity {
  readonly id: string;
  readonly workDir: string;
  readonly capabilities: Capabilities;
  readonly baseEnv: Readonly<Record<string, string>>;
}

/** The common part of every driver whose sandbox is served by the guest: the guest does everything. */
export abstract class GuestDriver implements Driver {
  abstract readonly backend: string;
  readonly id: string;
  readonly workDir: string;
  readonly capabilities: Capabilities;
  readonly baseEnv: Readonly<Record<string, string>>;
  onWarning?: (message: string) => void;
  #channel: GuestChannel;
  #files: GuestFiles;
  /** Pending while nothing new may start. Await it in a loop in place, not in a method: nothing may run after the last check. */
  #still: Promise<unknown> | undefined;

  constructor(identity: DriverIdentity, channel: GuestChannel) {
    this.id = identity.id;
    this.workDir = identity.workDir;
    this.capabilities = identity.capabilities;
    this.baseEnv = identity.baseEnv;
    this.#channel = channel;
    this.#files = new GuestFiles(channel, (path) => this.#relative(path));
  }

  /** Uses another guest from now on. */
  protected useChannel(channel: GuestChannel): void {
    this.#channel = channel;
    this.#files = new GuestFiles(channel, (path) => this.#relative(path));
  }

  /** Runs `work` while every process of the sandbox is frozen; they are always thawed afterwards. */
  protected frozenBy<T>(work: () => Promise<T>): Promise<T> {
    return this.alone(async () => {
      const channel = this.#channel;
      try {
        await freeze(channel);
        return await work();
      } finally {
        await thaw(channel);
      }
    });
  }

  /** Runs `work` while nothing new starts in the sandbox. */
  protected async alone<T>(work: () => Promise<T>): Promise<T> {
    while (this.#still) await this.#still;
    const running = work();
    this.#still = running
      .catch(() => undefined)
      .finally(() => {
        this.#still = undefined;
      });
    return await running;
  }

  async start(spec: StartSpec): Promise<DriverProcess> {
    const { signal } = spec;
    const unwanted = this.#still && abortOf(signal);
    while (this.#still && signal?.aborted !== true) await Promise.race([this.#still, unwanted]);
    if (signal?.aborted === true) throw new SandboxError("aborted", "The command was ended before it started");
    return await this.startNow(spec);
  }

  /** Starts a command, whatever else is running. */
  protected async startNow(spec: GuestCommand): Promise<DriverProcess> {
    try {
      return await startCommand(this.#channel, spec, this.#relative(spec.cwd));
    } catch (error) {
      if (!(error instanceof GuestFailure)) throw error;
      throw error.number === NO_USER ? errorFor(NO_USER, spec.user ?? "") : errorFor(error.number, spec.cwd);
    }
  }

  read(path: string): Promise<Uint8Array | null> {
    return this.#files.read(path);
  }

  async write(files: readonly { path: string; content: Uint8Array; mode: number }[]): Promise<void> {
    while (this.#still) await this.#still;
    for (let at = 0; at < files.length; ) {
      // Small files are sent without waiting for each other; the guest still writes them in this order.
      const large = files.slice(at, at + AT_ONCE).findIndex(({ content }) => content.length > SMALL);
      const batch = files.slice(at, at + (large === -1 ? AT_ONCE : Math.max(1, large)));
      await Promise.all(batch.map(({ path, content, mode }) => this.#files.write(path, content, mode)));
      at += batch.length;
    }
  }

  stat(path: string): Promise<FileStat | null> {
    return this.#files.stat(path);
  }

  list(path: string): Promise<string[]> {
    return this.#files.list(path);
  }

  async remove(path: string, opts: { recursive: boolean }): Promise<boolean> {
    while (this.#still) await this.#still;
    return await this.#files.remove(path, opts.recursive);
  }

  async rename(from: string, to: string): Promise<void> {
    while (this.#still) await this.#still;
    return await this.#files.rename(from, to);
  }

  async makeDirectory(path: string): Promise<void> {
    while (this.#still) await this.#still;
    return await this.#files.makeDirectory(path);
  }

  async importTree(tar: AsyncIterable<Uint8Array>, path: string): Promise<void> {
    while (this.#still) await this.#still;
    return await this.#files.importTree(tar, path);
  }

  exportTree(path: string): AsyncIterable<Uint8Array> {
    return this.#files.exportTree(path);
  }

  abstract close(): Promise<void> | Promise<PendingRemoval | undefined>;

  #relative(path: string): string {
    if (path === this.workDir) return "";
    return path.slice(this.workDir === "/" ? 1 : this.workDir.length + 1);
  }
}

function abortOf(signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => signal?.addEventListener("abort", () => resolve(), { once: true }));
}
