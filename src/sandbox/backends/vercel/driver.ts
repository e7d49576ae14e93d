import { SandboxError } from "../../../../contracts/errors.js";
import type { Capabilities, Changes, FileStat } from "../../../../contracts/types.js";
import { errorFor, GuestFailure, GuestFiles, startCommand } from "../../guest.js";
import type { Driver, DriverProcess, StartSpec } from "../../types.js";
import { vercelCapabilities } from "./capabilities.js";
import { toVercelError } from "./failure.js";
import type { Machine } from "./machine.js";
import { patiently } from "./patience.js";
import type { repositoryOperations } from "./repository.js";
import { writeTogether } from "./write-together.js";

/** What a driver asks of the one who makes machines and keeps their record. */
export interface VercelParts {
  readonly id: string;
  /** How long a call may wait where the service asks for it, in milliseconds. */
  readonly patience: number;
  /** What can be done with its repository. Absent: it has none. */
  readonly repository?: (driver: VercelDriver) => ReturnType<typeof repositoryOperations>;
  /** Saves the files, which stops the machine, and goes on with a new one that has them. Gives the snapshot's id. */
  snapshot(machine: Machine): Promise<{ id: string; next: Machine }>;
  /** A new machine with the files of a snapshot; the old one is gone. */
  restore(machine: Machine, id: string): Promise<Machine>;
  /** As `snapshot`, without an id, and with so many sandboxes more, or why there are none; this one goes on. */
  fork(machine: Machine, count: number): Promise<{ next: Machine; forks: VercelDriver[]; failure?: unknown }>;
  /** Stops a machine whose files are kept. */
  release(machine: Machine): Promise<void>;
}

/** Ports that one machine can have open. */
const MAX_PORTS = 15;

/** The Vercel driver: everything is asked of the guest in the machine, which changes when its files are saved. */
export class VercelDriver implements Driver {
  readonly backend = "vercel";
  readonly id: string;
  readonly workDir: string;
  readonly capabilities: Capabilities;
  readonly baseEnv: Readonly<Record<string, string>>;
  readonly #parts: VercelParts;
  #machine: Machine;
  readonly #endRepository: () => Promise<void> = async () => undefined;
  #files: GuestFiles;
  /** While it is pending the machine is being changed. */
  #changing: Promise<unknown> | undefined;
  onWarning?: (message: string) => void;
  declare readonly changes?: () => Promise<Changes>;
  declare readonly git?: NonNullable<Driver["git"]>;

  constructor(parts: VercelParts, machine: Machine) {
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
    // Each user has a guest of its own: none of them could end what another one runs.
    const { user, ...command } = spec;
    try {
      return await startCommand(await this.#machine.channelFor(user), command, this.#relative(spec.cwd));
    } catch (error) {
      throw error instanceof GuestFailure ? errorFor(error.number, spec.cwd) : error;
    }
  }

  async read(path: string): Promise<Uint8Array | null> {
    await this.#settled();
    return await this.#files.read(path);
  }

  async write(files: readonly { path: string; content: Uint8Array; mode: number }[]): Promise<void> {
    await this.#settled();
    await writeTogether(this.#files, files);
  }

  async stat(path: string): Promise<FileStat | null> {
    await this.#settled();
    return await this.#files.stat(path);
  }

  async list(path: string): Promise<string[]> {
    await this.#settled();
    return await this.#files.list(path);
  }

  async remove(path: string, opts: { recursive: boolean }): Promise<boolean> {
    await this.#settled();
    return await this.#files.remove(path, opts.recursive);
  }

  async rename(from: string, to: string): Promise<void> {
    await this.#settled();
    await this.#files.rename(from, to);
  }

  async makeDirectory(path: string): Promise<void> {
    await this.#settled();
    await this.#files.makeDirectory(path);
  }

  async importTree(tar: AsyncIterable<Uint8Array>, path: string): Promise<void> {
    await this.#settled();
    await this.#files.importTree(tar, path);
  }

  async *exportTree(path: string): AsyncGenerator<Uint8Array> {
    await this.#settled();
    yield* this.#files.exportTree(path);
  }

  snapshot(): Promise<string> {
    return this.#change(async (machine) => {
      const { id, next } = await this.#parts.snapshot(machine);
      return [next, id];
    });
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
          throw new SandboxError("limit_exceeded", `Port ${port} cannot be opened: ${MAX_PORTS} are open already`);
        }
        await patiently(this.#parts.patience, () => sandbox.update({ ports: [...open, port] }));
      }
      const route = sandbox.routes.find((each) => each.port === port);
      if (route !== undefined) return new URL(route.url).origin;
    } catch (error) {
      throw toVercelError(error, "url");
    }
    throw new SandboxError("unavailable", `The service opened no way to port ${port}`);
  }

  async close(): Promise<void> {
    await this.#settled().catch(() => undefined);
    await this.#endRepository();
    await this.#machine.close();
    await this.#parts.release(this.#machine);
  }

  async #settled(): Promise<void> {
    while (this.#changing !== undefined) await this.#changing;
  }

  /** Runs what leads to another machine; calls that come meanwhile wait for that one. */
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
    return path === this.workDir ? "" : path.slice(this.workDir.length + 1);
  }
}
