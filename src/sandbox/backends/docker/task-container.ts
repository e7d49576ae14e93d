import { posix } from "node:path";
import type { Capabilities, Limits } from "../../../../contracts/types.js";
import { startCommand } from "../../guest.js";
import { createSandbox } from "../../portable.js";
import type { DriverProcess, Sandbox } from "../../types.js";
import { startContainer } from "./container.js";
import { DockerDriver } from "./driver.js";
import type { Engine } from "./engine/engine.js";

const CAPABILITIES: Capabilities = {
  isolation: "container",
  killTree: "complete",
  network: ["none", "full"],
  limits: ["memory", "cpus", "pids"],
  snapshot: "none",
  fork: "none",
  pty: true,
  user: true,
  ports: false,
  git: false,
};
const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** What a container of a task is made from. */
export interface TaskContainerPlan {
  /** The engine's name for it. */
  readonly name: string;
  readonly image: string;
  readonly hostname: string;
  readonly user: string;
  /** Where commands start. */
  readonly workingDir: string;
  /** Of every command. It is not written down on the engine. */
  readonly env: Readonly<Record<string, string>>;
  readonly limits: Limits;
  readonly labels: Readonly<Record<string, string>>;
  /** Name of the network, where the container is known by its host name. Absent: none. */
  readonly network?: { readonly name: string; readonly internal: boolean };
  /** Whether its own command has the rights that services are used to. */
  readonly isService: boolean;
  onWarning(message: string): void;
}

/** A container of a task. The whole of it is one sandbox. */
export interface TaskContainer {
  /** What the engine calls it. */
  readonly id: string;
  readonly sandbox: Sandbox;
  /** Starts what the container runs by itself. */
  start(argv: readonly string[]): Promise<DriverProcess>;
  /** Removes all that is below a directory. */
  empty(path: string): Promise<void>;
  /** Runs something while every process inside stands still. */
  frozen<T>(work: () => Promise<T>): Promise<T>;
  /** Ends everything inside and takes the container away; throws when it is still there. */
  remove(): Promise<void>;
}

/** Makes a container of a task and starts it; all of it or nothing. */
export async function startTaskContainer(
  engine: Engine,
  plan: TaskContainerPlan,
  signal?: AbortSignal,
): Promise<TaskContainer> {
  const { name, image, hostname, user, limits, labels, network, workingDir } = plan;
  const container = await startContainer(
    engine,
    {
      name,
      image,
      hostname,
      user,
      limits,
      labels,
      // All of the container can be reached; where commands start is another matter.
      workDir: "/",
      network: network === undefined ? "none" : { name: network.name, aliases: [hostname] },
      // The engine would ask on behalf of a container that reaches nobody: names are a way out too.
      ...(network?.internal === true && { dns: ["127.0.0.1"] }),
      capabilities: plan.isService ? "service" : "none",
      isKept: false,
    },
    signal,
  );
  const env = { PATH, LANG: "C.UTF-8", ...plan.env };
  const driver = new TaskDriver({
    id: name,
    workDir: "/",
    capabilities: CAPABILITIES,
    baseEnv: env,
    container,
    release: () => container.remove(),
  });
  const sandbox = createSandbox(driver, {
    onEvent: ({ type, message }) => {
      if (type === "warning") plan.onWarning(message);
    },
  });
  try {
    await driver.makeDirectory(workingDir);
    await sandbox.setWorkdir(workingDir);
  } catch (error) {
    await container.remove();
    throw error;
  }
  return {
    id: container.id,
    sandbox,
    start: (argv) =>
      startCommand(
        container.channel,
        { argv, env, cwd: workingDir, stdin: "none", keepCapabilities: plan.isService },
        workingDir.replace(/^\/+/, ""),
      ),
    async empty(path) {
      for (const name of await driver.list(path)) await driver.remove(posix.join(path, name), { recursive: true });
    },
    frozen: (work) => driver.frozen(work),
    async remove() {
      await sandbox.teardown();
      if (driver.failure !== undefined) throw driver.failure;
    },
  };
}

class TaskDriver extends DockerDriver {
  /** Why the container could not be removed. */
  failure: unknown;

  override async close(): Promise<void> {
    try {
      await this.container.remove();
      this.failure = undefined;
    } catch (error) {
      this.failure = error;
      throw error;
    }
  }
}
