import type { DriverConnection, PendingRemoval } from "../../../contracts/driver.js";
import { SandboxError } from "../../../contracts/errors.js";
import type { Capabilities } from "../../../contracts/types.js";
import type { Driver, DriverProcess, StartSpec } from "../types.js";
import type { GuestChannel } from "./channel.js";
import { connectInside, waitForPortInside } from "./connection.js";
import { errorFor, GuestFailure, NO_USER } from "./failure.js";
import { GuestFileCalls } from "./guest-file-calls.js";
import { GuestFiles } from "./guest-files.js";
import { type GuestCommand, startCommand } from "./guest-process.js";
import { freeze, thaw } from "./listener.js";
import { cwdFor, pathBeneath } from "./path-beneath.js";

/** The identity of a driver and what it enforces. */
export interface DriverIdentity {
  readonly id: string;
  readonly workDir: string;
  readonly capabilities: Capabilities;
  readonly baseEnv: Readonly<Record<string, string>>;
}

/** The common part of every driver whose sandbox is served by the guest: the guest does everything. */
export abstract class GuestDriver extends GuestFileCalls implements Driver {
  abstract readonly backend: string;
  readonly id: string;
  readonly workDir: string;
  readonly capabilities: Capabilities;
  readonly baseEnv: Readonly<Record<string, string>>;
  onWarning?: (message: string) => void;
  onLost?: () => void;
  #channel: GuestChannel;
  #files: GuestFiles;
  /** Pending while nothing new may start. Await it in a loop in place, not in a method: nothing may run after the last check. */
  #still: Promise<unknown> | undefined;

  constructor(identity: DriverIdentity, channel: GuestChannel) {
    super();
    this.id = identity.id;
    this.workDir = identity.workDir;
    this.capabilities = identity.capabilities;
    this.baseEnv = identity.baseEnv;
    this.#channel = channel;
    this.#files = new GuestFiles(channel, (path) => this.#relative(path));
    this.#watch(channel);
  }

  /** Uses another guest from now on. */
  protected useChannel(channel: GuestChannel): void {
    this.#channel = channel;
    this.#files = new GuestFiles(channel, (path) => this.#relative(path));
    this.#watch(channel);
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
    const unwanted = this.#still && abortOf(spec.signal);
    while (this.#still && spec.signal?.aborted !== true) await Promise.race([this.#still, unwanted]);
    if (unwanted && spec.signal?.aborted === true) {
      throw new SandboxError("aborted", "The command was ended before it started");
    }
    return await this.startNow(spec);
  }

  /** Starts a command, whatever else is running. */
  protected async startNow(spec: GuestCommand): Promise<DriverProcess> {
    try {
      return await startCommand(this.#channel, spec, cwdFor(this.workDir, spec));
    } catch (error) {
      if (!(error instanceof GuestFailure)) throw error;
      throw error.number === NO_USER ? errorFor(NO_USER, spec.user ?? "") : errorFor(error.number, spec.cwd);
    }
  }

  protected override async useFiles<T>(isChange: boolean, work: (files: GuestFiles) => Promise<T>): Promise<T> {
    while (isChange && this.#still) await this.#still;
    return await work(this.#files);
  }

  protected override streamFiles(work: (files: GuestFiles) => AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    return work(this.#files);
  }

  async connect(port: number, signal: AbortSignal): Promise<DriverConnection> {
    while (this.#still && !signal.aborted) await Promise.race([this.#still, abortOf(signal)]);
    return await connectInside(this.#channel, port, signal);
  }

  async waitForPort(port: number, timeout: number, signal: AbortSignal): Promise<boolean> {
    while (this.#still && !signal.aborted) await Promise.race([this.#still, abortOf(signal)]);
    return await waitForPortInside(this.#channel, port, timeout, signal);
  }

  abstract close(): Promise<void> | Promise<PendingRemoval | undefined>;

  #watch(channel: GuestChannel): void {
    void channel.ended.then(({ code }) => {
      // A guest that is being replaced ends too.
      if (this.#channel === channel && this.#still === undefined && code !== "closed") this.onLost?.();
    });
  }

  #relative(path: string): string {
    return pathBeneath(this.workDir, path);
  }
}

function abortOf(signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => signal?.addEventListener("abort", () => resolve(), { once: true }));
}
