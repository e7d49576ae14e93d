import type { Capabilities, FileStat } from "../../../contracts/types.js";
import { AgentFiles } from "../agent/agent-files.js";
import { startCommand } from "../agent/agent-process.js";
import { AgentFailure, errorFor } from "../agent/failure.js";
import type { Driver, DriverProcess, StartSpec } from "../types.js";
import { oomKills } from "./control-group.js";
import type { RunningAgent } from "./start-agent.js";

/** What a local driver is made of. */
export interface LocalParts {
  id: string;
  workDir: string;
  capabilities: Capabilities;
  baseEnv: Readonly<Record<string, string>>;
  agent: RunningAgent;
  cgroups: readonly string[];
  snapshot(warn: (message: string) => void): Promise<string>;
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
  onWarning?: (message: string) => void;

  constructor(parts: LocalParts) {
    this.id = parts.id;
    this.workDir = parts.workDir;
    this.capabilities = parts.capabilities;
    this.baseEnv = parts.baseEnv;
    this.#parts = parts;
    this.#files = new AgentFiles(parts.agent.channel, (path) => this.#relative(path));
  }

  async start(spec: StartSpec): Promise<DriverProcess> {
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
    for (const { path, content, mode } of files) await this.#files.write(path, content, mode);
  }

  stat(path: string): Promise<FileStat | null> {
    return this.#files.stat(path);
  }

  list(path: string): Promise<string[]> {
    return this.#files.list(path);
  }

  remove(path: string, opts: { recursive: boolean }): Promise<boolean> {
    return this.#files.remove(path, opts.recursive);
  }

  rename(from: string, to: string): Promise<void> {
    return this.#files.rename(from, to);
  }

  makeDirectory(path: string): Promise<void> {
    return this.#files.makeDirectory(path);
  }

  importTree(tar: AsyncIterable<Uint8Array>, path: string): Promise<void> {
    return this.#files.importTree(tar, path);
  }

  exportTree(path: string): AsyncIterable<Uint8Array> {
    return this.#files.exportTree(path);
  }

  snapshot(): Promise<string> {
    return this.#parts.snapshot((message) => this.onWarning?.(message));
  }

  async destroy(): Promise<void> {
    await this.#parts.agent.stop();
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
