import type { SnapshotRecord } from "../../../../contracts/backend.js";
import { SandboxError } from "../../../../contracts/errors.js";
import type { Capabilities, Changes } from "../../../../contracts/types.js";
import { snapshotInTime } from "../../../ledger.js";
import {
  cwdFor,
  errorFor,
  GuestFailure,
  GuestFileCalls,
  GuestFiles,
  pathBeneath,
  startCommand,
  waitForPortInside,
} from "../../guest.js";
import type { Driver, DriverCallOptions, DriverFile, DriverProcess, StartSpec } from "../../types.js";
import { vercelCapabilities } from "./capabilities.js";
import { toVercelError } from "./failure.js";
import type { Machine } from "./machine.js";
import { patiently } from "./patience.js";
import type { repositoryOperations } from "./repository.js";
import { writeTogether } from "./write-together.js";

/** What a driver needs from the code that makes machines and writes their record. */
export interface VercelParts {
  readonly id: string;
  /** How long a call may wait if the service asks for it, in milliseconds. */
  readonly patience: number;
  /** The operations on its repository. Absent: it has none. */
  readonly repository?: (driver: VercelDriver) => ReturnType<typeof repositoryOperations>;
  /** Saves the files, which stops the machine, and continues with a new one that has them. Returns the snapshot's id. */
  snapshot(machine: Machine): Promise<{ id: string; next: Machine }>;
  /** Deletes a snapshot that nobody waits for any more. */
  removeSnapshot(record: SnapshotRecord): Promise<void>;
  /** Makes a new machine with the files of a snapshot; the old one is removed. */
  restore(machine: Machine, id: string): Promise<Machine>;
  /** Like `snapshot`, without an id, and with `count` more sandboxes, or the reason why there are none; this sandbox continues. */
  fork(machine: Machine, count: number): Promise<{ next: Machine; forks: VercelDriver[]; failure?: unknown }>;
  /** Stops a machine whose files are kept. */
  close(machine: Machine): Promise<void>;
}

/** The most ports that one machine can have open. */
const MAX_PORTS = 15;

/** The Vercel driver: the guest in the machine does everything. The machine changes when its files are saved. */
export class VercelDriver extends GuestFileCalls implements Driver {
  readonly backend = "vercel";
  readonly id: string;
  readonly workDir: string;
  readonly capabilities: Capabilities;
  readonly baseEnv: Readonly<Record<string, string>>;
  readonly #parts: VercelParts;
  #machine: Machine;
  readonly #endRepository: () => Promise<void> = async () => undefined;
  #files: GuestFiles;
  /** Pending while the machine is being changed. */
  #changing: Promise<unknown> | undefined;
  onWarning?: (message: string) => void;
  declare readonly changes?: () => Promise<Changes>;
  declare readonly git?: NonNullable<Driver["git"]>;

  constructor(parts: VercelParts, machine: Machine) {
    super();
    this.id = parts.id;
    this.workDir = machine.workDir;
    this.baseEnv = machine.baseEnv;
    this.#parts = parts;
    this.#machine = machine;
    this.#files = this.#filesOf(machine);
    const repository = parts.repository?.(this);
    this.capabilities = vercelCapabilities(repository !== undefined);
    if (repository !== undefined) {
      const { end, ...operations } = repository;
      this.#endRepository = end;
      Object.assign(this, operations);
    }
  }

  async start(spec: StartSpec): Promise<DriverProcess> {
    await this.#settled();
    // Each user has a guest of its own: one user could not end what another one runs.
    const { user, ...command } = spec;
    try {
      return await startCommand(await this.#machine.channelFor(user), command, cwdFor(this.workDir, spec));
    } catch (error) {
      throw error instanceof GuestFailure ? errorFor(error.number, spec.cwd) : error;
    }
  }

  override write(uploads: readonly DriverFile[], { signal }: DriverCallOptions = {}): Promise<void> {
    return this.useFiles(true, (files) => writeTogether(files, uploads, signal));
  }

  protected override async useFiles<T>(_isChange: boolean, work: (files: GuestFiles) => Promise<T>): Promise<T> {
    await this.#settled();
    return await work(this.#files);
  }

  protected override async *streamFiles(
    work: (files: GuestFiles) => AsyncIterable<Uint8Array>,
  ): AsyncGenerator<Uint8Array> {
    await this.#settled();
    yield* work(this.#files);
  }

  snapshot(signal?: AbortSignal): Promise<string> {
    const save = (): Promise<string> =>
      this.#change(async (machine) => {
        const { id, next } = await this.#parts.snapshot(machine);
        return [next, id];
      });
    return snapshotInTime(signal, save, (record) => this.#parts.removeSnapshot(record));
  }

  restore(id: string): Promise<void> {
    return this.#change(async (machine) => [await this.#parts.restore(machine, id), undefined]);
  }

  async fork(count: number): Promise<Driver[]> {
    const { forks, failure } = await this.#change(async (machine) => {
      const made = await this.#parts.fork(machine, count);
      return [made.next, made];
    });
    if (failure !== undefined) throw failure;
    return forks;
  }

  async url(port: number): Promise<string> {
    await this.#settled();
    const { sandbox } = this.#machine;
    try {
      const open = sandbox.routes.map((route) => route.port);
      if (!open.includes(port)) {
        if (open.length >= MAX_PORTS) {
          throw new SandboxError("limit_exceeded", `Port ${port} can't be opened: ${MAX_PORTS} ports are already open`);
        }
        await patiently(this.#parts.patience, () => sandbox.update({ ports: [...open, port] }));
      }
      const route = sandbox.routes.find((each) => each.port === port);
      if (route !== undefined) return new URL(route.url).origin;
    } catch (error) {
      throw toVercelError(error, "url");
    }
    throw new SandboxError("unavailable", `The service did not open port ${port}`);
  }

  async waitForPort(port: number, timeout: number, signal: AbortSignal): Promise<boolean> {
    await this.#settled();
    return await waitForPortInside(this.#machine.channel, port, timeout, signal);
  }

  async close(): Promise<void> {
    await this.#settled().catch(() => undefined);
    await this.#endRepository();
    await this.#machine.close();
    await this.#parts.close(this.#machine);
  }

  async #settled(): Promise<void> {
    while (this.#changing !== undefined) await this.#changing;
  }

  /** Runs work that leads to another machine; calls that come meanwhile wait for that machine. */
  async #change<T>(work: (machine: Machine) => Promise<[Machine, T]>): Promise<T> {
    await this.#settled();
    const before = this.#machine;
    const changing = work(before).then(([next, result]) => {
      this.#machine = next;
      this.#files = this.#filesOf(next);
      return result;
    });
    this.#changing = changing
      .catch(() => undefined)
      .finally(() => {
        this.#changing = undefined;
      });
    return await changing;
  }

  #filesOf(machine: Machine): GuestFiles {
    return new GuestFiles(machine.channel, (path) => this.#relative(path));
  }

  #relative(path: string): string {
    return pathBeneath(this.workDir, path);
  }
}
