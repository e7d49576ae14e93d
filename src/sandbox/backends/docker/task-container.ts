import { posix } from "node:path";
import type { ContainerRequest, EngineContainer } from "../../../../contracts/container-engine.js";
import type { Capabilities } from "../../../../contracts/types.js";
import { startCommand } from "../../guest.js";
import { createSandbox } from "../../portable.js";
import { startContainer } from "./container.js";
import { DockerDriver } from "./driver.js";
import type { Engine } from "./engine/engine.js";
import { commitContainer } from "./image/commit.js";
import { ownerLabels } from "./labels.js";

const CAPABILITIES: Capabilities = {
  isolation: "container",
  killTree: "complete",
  network: ["none", "full"],
  limits: ["memory", "cpus", "pids"],
  snapshot: "none",
  fork: "none",
  pty: true,
  user: true,
  combinedOutput: true,
  ports: false,
  git: false,
};
const COPY_PATIENCE = 600_000;
const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Starts a container of a task, or leaves nothing. `layersOf`: how many layers the images have, by id or name. */
export async function startTaskContainer(
  engine: Engine,
  request: ContainerRequest,
  layersOf: Map<string, number>,
  signal: AbortSignal,
): Promise<EngineContainer> {
  const { name, image, hostname, user, limits, network, workingDir, isService } = request;
  const container = await startContainer(
    engine,
    {
      name,
      image,
      hostname,
      user,
      limits,
      labels: { ...ownerLabels(), ...request.labels },
      // The sandbox is the whole container; commands start in `workingDir`.
      workDir: "/",
      network: network === undefined ? "none" : { name: network.name, aliases: [hostname] },
      // Otherwise the engine would look up names for a container that must reach nobody. That is a way out too.
      ...(network?.internal === true && { dns: ["127.0.0.1"] }),
      capabilities: isService ? "service" : "none",
      isKept: false,
    },
    signal,
  );
  const from = { layers: layersOf.get(image) ?? 0 };
  const env = { PATH, LANG: "C.UTF-8", ...request.env };
  let failure: unknown;
  const driver = new DockerDriver({
    id: name,
    workDir: "/",
    capabilities: CAPABILITIES,
    baseEnv: env,
    container,
    release: async () => {
      failure = undefined;
      await container.remove().catch((error: unknown) => {
        failure = error;
        throw error;
      });
    },
  });
  const sandbox = createSandbox(driver, {
    onEvent: ({ type, message }) => {
      if (type === "warning") request.onWarning(message);
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
        { argv, env, cwd: workingDir, stdin: "none", keepCapabilities: isService },
        workingDir.replace(/^\/+/, ""),
      ),
    async commit(target, labels) {
      const labelled = { ...ownerLabels(), ...labels };
      layersOf.set(target, await commitContainer(engine, container.id, target, from, labelled));
    },
    async copyFrom(origin, path) {
      for (const entry of await driver.list(path)) await driver.remove(posix.join(path, entry), { recursive: true });
      await copyTree(engine, origin.id, container.id, path);
    },
    frozen: (work) => driver.frozen(work),
    async remove() {
      await sandbox.teardown();
      if (failure !== undefined) throw failure;
    },
  };
}

/** Copies a directory of one container over that of another, with owners and modes. It may be a volume. */
async function copyTree(engine: Engine, from: string, to: string, path: string): Promise<void> {
  const files = await engine.stream("GET", `/containers/${from}/archive`, { query: { path }, timeout: COPY_PATIENCE });
  await engine.call("PUT", `/containers/${to}/archive`, {
    // The archive starts with the directory itself.
    query: { path: posix.dirname(path) },
    body: files as AsyncIterable<Uint8Array>,
    timeout: COPY_PATIENCE,
  });
}
