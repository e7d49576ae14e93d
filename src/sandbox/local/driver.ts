import type { Capabilities, Changes, FileStat } from "../../../contracts/types.js";
import { AgentFiles } from "../agent/agent-files.js";
import { startCommand } from "../agent/agent-process.js";
import { AgentFailure, errorFor } from "../agent/failure.js";
import { freeze, thaw } from "../agent/listener.js";
import { failpoint } from "../failpoint.js";
import type { TreeOperations } from "../git/operations.js";
import type { RunningAgent } from "../jail/start-agent.js";
import type { Driver, DriverProcess, StartSpec } from "../types.js";
import { oomKills } from "./control-group.js";

/** What a local driver is made of. */
export interface LocalParts {
  id: string;
  workDir: string;
  capabilities: Capabilities;
  baseEnv: Readonly<Record<string, string>>;
  agent: RunningAgent;
  cgroups: readonly string[];
  /** What can be done with the files as a whole. */
  operations(driver: LocalDriver, signal: AbortSignal): TreeOperations;
  /** Takes away what belongs to the sandbox, once its processes are gone. */
  release(): Promise<void>;
}

/** The local driver: everything is asked of the agent inside. */
export class LocalDriver implements Driver {
  readonly backend = "local";
  readonly id: string;
  readonly workDir: string;
  readonly capabilities: Capabilities;
  readonly baseEnv: Readonly<Record<string, string>>;
  readonly #parts: LocalParts;
  readonly #files: AgentFiles;
  readonly #ending = new AbortController();
  readonly #settled: () => Promise<void>;
  /**
   * While it is pending nothing new begins inside. Waited for by a loop in place, not by a method: between the last look
   * and what follows it nothing else may run.
   */
  #still: Promise<unknown> | undefined;
  onWarning?: (message: string) => void;
  declare readonly snapshot?: () => Promise<string>;
  declare readonly restore?: (id: string) => Promise<void>;
  declare readonly fork?: (count: number) => Promise<Driver[]>;
  declare readonly changes?: () => Promise<Changes>;
  declare readonly git?: NonNullable<Driver["git"]>;

  constructor(parts: LocalParts) {
    this.id = parts.id;
    this.workDir = parts.workDir;
    this.capabilities = parts.capabilities;
    this.baseEnv = parts.baseEnv;
    this.#parts = parts;
    this.#files = new AgentFiles(parts.agent.channel, (path) => this.#relative(path));
    const { settled, ...operations } = parts.operations(this, this.#ending.signal);
    this.#settled = settled;
    Object.assign(this, operations);
  }

  /** Runs something while every process of the sandbox stands still; they always go on afterwards. */
  async frozen<T>(work: () => Promise<T>): Promise<T> {
    const { channel } = this.#parts.agent;
    if (this.capabilities.snapshot !== "consistent") return await work();
    while (this.#still) await this.#still;
    const frozen = (async () => {
      try {
        await freeze(channel);
        await failpoint("snapshot.frozen");
        return await work();
      } finally {
        await thaw(channel);
      }
    })();
    this.#still = frozen
      .catch(() => undefined)
      .finally(() => {
        this.#still = undefined;
      });
    return await frozen;
  }

  async start(spec: StartSpec): Promise<DriverProcess> {
    while (this.#still) await this.#still;
    const { agent, cgroups } = this.#parts;
    const before = cgroups.length > 0 ? oomKills(cgroups) : undefined;
    let process: DriverProcess;
    try {
      process = await startCommand(agent.channel, spec, this.#relative(spec.cwd));
    } catch (error) {
      throw error instanceof AgentFailure ? errorFor(error.number, spec.cwd) : error;
    }
    return before === undefined ? process : withOomFlag(process, () => (oomKills(cgroups) ?? before) > before);
  }

  read(path: string): Promise<Uint8Array | null> {
    return this.#files.read(path);
  }

  async write(files: readonly { path: string; content: Uint8Array; mode: number }[]): Promise<void> {
    while (this.#still) await this.#still;
    for (const { path, content, mode } of files) await this.#files.write(path, content, mode);
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

  /** Ends everything that runs; the files stay. */
  async stop(): Promise<void> {
    this.#ending.abort();
    await this.#parts.agent.stop();
    await this.#settled();
  }

  async destroy(): Promise<void> {
    await this.stop();
    await failpoint("teardown.stopped");
    await this.#parts.release();
  }

  #relative(path: string): string {
    return path === this.workDir ? "" : path.slice(this.workDir.length + 1);
  }
}

/** Tells a command that the memory limit killed from one that was killed otherwise. */
function withOomFlag(process: DriverProcess, wasKilled: () => boolean): DriverProcess {
  return {
    stdout: process.stdout,
    stderr: process.stderr,
    writeStdin: (chunk) => process.writeStdin(chunk),
    closeStdin: () => process.closeStdin(),
    kill: (signal) => process.kill(signal),
    wait: async () => {
      const exit = await process.wait();
      return { ...exit, oomKilled: exit.exitCode !== 0 && wasKilled() };
    },
    ...(process.resize && { resize: (cols: number, rows: number) => process.resize?.(cols, rows) as Promise<void> }),
  };
}
