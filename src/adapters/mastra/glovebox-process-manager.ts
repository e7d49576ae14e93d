import type { ProcessHandle, ProcessInfo, SandboxProcessManager, SpawnProcessOptions } from "@mastra/core/workspace";
import { defined } from "../../util/defined.js";
import { forCall, shellLine } from "../run-command.js";
import { GloveboxProcessHandle } from "./glovebox-process-handle.js";
import { mastra } from "./load-mastra.js";
import type { RunningSandbox } from "./running-sandbox.js";

/** How to start a process. */
export interface GloveboxSpawnOptions extends SpawnProcessOptions {
  /** `none`: empty and closed. Default `pipe`: it stays open until `closeStdin`. */
  stdin?: "pipe" | "none";
}

const Base: typeof SandboxProcessManager<RunningSandbox> = mastra.SandboxProcessManager;

/** Starts processes in a Glovebox sandbox and keeps track of them. */
export class GloveboxProcessManager extends Base {
  /** Starts a shell command. It ends at its `timeout`, when it is killed, or with the sandbox. */
  override async spawn(command: string, options: GloveboxSpawnOptions = {}): Promise<ProcessHandle> {
    const { cwd, env, timeout = this.sandbox.timeout, stdin = "pipe" } = options;
    const process = await this.sandbox.whileAlive(async (sandbox) => {
      const argv = await shellLine(sandbox, command);
      return await sandbox.spawn({ ...forCall({ cwd, env, ...defined({ timeout }) }), argv, stdin });
    });
    const handle = new GloveboxProcessHandle(process, { ...options, ...defined({ timeout }) });
    this._tracked.set(handle.pid, handle);
    return handle;
  }

  /** The processes that were started here and not yet forgotten, running or not. */
  override async list(): Promise<ProcessInfo[]> {
    return [...this._tracked.values()].map(({ pid, command, exitCode }) => ({
      pid,
      running: exitCode === undefined,
      ...defined({ command, exitCode }),
    }));
  }

  /** Kills everything that runs, and waits for its end. */
  async killAll(): Promise<void> {
    const running = [...this._tracked.values()].filter(({ exitCode }) => exitCode === undefined);
    await Promise.allSettled(running.map(async (handle) => (await handle.kill()) && (await handle.wait())));
  }
}
