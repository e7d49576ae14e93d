import { randomBytes } from "node:crypto";
import type { Capabilities, NetworkPolicy } from "../../contracts/types.js";
import { assertCapabilities } from "./capabilities.js";
import { claimRecord, dismantle, type RemoverOf } from "./dismantle.js";
import { type RunningContainer, resumeContainer, startContainer } from "./docker/container.js";
import type { ContainerPlan } from "./docker/container-config.js";
import { DockerDriver } from "./docker/driver.js";
import type { EndpointChoice } from "./docker/endpoint.js";
import type { Engine } from "./docker/engine.js";
import { engineOf, lastingChoice } from "./docker/engines.js";
import { findImage, type ImageConfig } from "./docker/image-config.js";
import { KEPT_LABEL, ownerLabels, SANDBOX_LABEL } from "./docker/labels.js";
import { checkDockerOptions, checkPossible } from "./docker/options.js";
import { pullImage } from "./docker/pull-image.js";
import { type EngineResource, removeResource } from "./docker/resources.js";
import { openEgress } from "./egress/open-egress.js";
import { SandboxError, toSandboxError } from "./errors.js";
import { failpoint } from "./failpoint.js";
import { createRecord, markReady, updateRecord } from "./ledger.js";
import { validateSandboxOptions } from "./options.js";
import { createSandbox } from "./portable.js";
import { reapRecords } from "./reap-records.js";
import type { BackendModule } from "./registry.js";
import type { DockerOptions, Sandbox, SandboxOptions } from "./types.js";

export { AttachedStream } from "./docker/attached-stream.js";
export { commitContainer } from "./docker/commit.js";
export { type RunningContainer, resumeContainer, startContainer } from "./docker/container.js";
export type { ContainerPlan } from "./docker/container-config.js";
export { type OutputPiece, readOutput } from "./docker/demultiplexer.js";
export { DockerDriver } from "./docker/driver.js";
export { type Endpoint, type EndpointChoice, findEndpoint } from "./docker/endpoint.js";
export { Engine, type EngineCall } from "./docker/engine.js";
export { EngineError } from "./docker/engine-error.js";
export type { ImageConfig } from "./docker/image-config.js";
export { type ImageEvent, type ImageOrder, ImageStore } from "./docker/image-store.js";
export { ownerLabels } from "./docker/labels.js";
export { createNetwork } from "./docker/network.js";
export { type ProgressLine, readJsonLines, readProgress } from "./docker/progress.js";
export { removeContainer } from "./docker/remove-container.js";
export { removeImage, removeNetwork } from "./docker/resources.js";
export { startTaskContainer, type TaskContainer } from "./docker/task-container.js";
export { removeResource };

const ownRemover: RemoverOf = async () => removeResource;
const WORK_DIR = "/workspace";
const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** What a kept sandbox remembers of how it was made. Never a secret, so never `env`. */
interface Reopen {
  engine: EndpointChoice;
  plan: ContainerPlan;
  network: NetworkPolicy;
  /** The environment that the image brings. */
  imageEnv: Readonly<Record<string, string>>;
}

/** What a container keeps. */
export const DOCKER_CAPABILITIES: Capabilities = {
  isolation: "container",
  killTree: "complete",
  network: ["none", "full", "allow"],
  limits: ["memory", "cpus", "pids"],
  snapshot: "none",
  fork: "none",
  pty: true,
  user: true,
  ports: false,
  git: false,
  renames: "all",
};

/** Opens a sandbox in a container of its own. */
export async function createDockerSandbox(opts: SandboxOptions = {}): Promise<Sandbox> {
  validateSandboxOptions(opts);
  const docker = checkDockerOptions(opts);
  checkPossible(opts, docker);
  assertCapabilities(opts, DOCKER_CAPABILITIES, "docker");
  try {
    opts.signal?.throwIfAborted();
    await reapOnce();
    return opts.id === undefined ? await createNew(opts, docker) : await reopen(opts.id, opts);
  } catch (error) {
    if (opts.signal?.aborted) {
      throw new SandboxError("aborted", "The creation of the sandbox was aborted", {
        backend: "docker",
        operation: "open",
        cause: error,
      });
    }
    throw toSandboxError(error, { backend: "docker", operation: "open" });
  }
}

/** What the registry calls. */
export function open(opts: SandboxOptions): Promise<Sandbox> {
  return createDockerSandbox(opts);
}

async function createNew(opts: SandboxOptions, docker: DockerOptions): Promise<Sandbox> {
  const engine = engineOf(docker);
  const image = await imageFor(engine, opts.image ?? "", docker, opts.signal);
  const id = randomBytes(8).toString("hex");
  const network = opts.network ?? "none";
  const { user = image.user, workDir = WORK_DIR, hostname, agent, unsafe } = docker;
  const plan: ContainerPlan = {
    name: `glovebox-${id}`,
    image: image.id,
    user,
    workDir,
    network: network === "full" ? "bridge" : "none",
    limits: opts.limits ?? {},
    capabilities: "none",
    isKept: opts.keep === true,
    labels: { ...ownerLabels(), [SANDBOX_LABEL]: id, ...(opts.keep === true && { [KEPT_LABEL]: "1" }) },
    ...(hostname !== undefined && { hostname }),
    ...(agent !== undefined && { agent }),
    ...(unsafe !== undefined && { unsafe }),
    ...(opts.mounts !== undefined && { mounts: opts.mounts }),
  };
  const reopenable: Reopen = { engine: lastingChoice(docker, engine), plan, network, imageEnv: image.env };
  return createSandbox(await makeDriver(id, engine, reopenable, opts), opts);
}

async function imageFor(
  engine: Engine,
  name: string,
  docker: DockerOptions,
  signal?: AbortSignal,
): Promise<ImageConfig> {
  const present = await findImage(engine, name, signal);
  if (present !== undefined) return present;
  if (docker.pull !== "never") await pullImage(engine, name, { signal });
  const pulled = docker.pull === "never" ? undefined : await findImage(engine, name, signal);
  if (pulled !== undefined) return pulled;
  throw new SandboxError("not_found", `The Docker engine has no image "${name}"`, { hint: `docker pull ${name}` });
}

/** Makes a container and a driver for it; all of it or nothing. */
async function makeDriver(id: string, engine: Engine, reopenable: Reopen, opts: SandboxOptions): Promise<DockerDriver> {
  const { plan } = reopenable;
  const container: EngineResource = { kind: "container", name: plan.name, engine: reopenable.engine };
  await createRecord({ id, backend: "docker", workDir: plan.workDir, resources: [container] });
  let running: RunningContainer | undefined;
  try {
    await failpoint("create.recorded");
    running = await startContainer(engine, plan, opts.signal);
    await failpoint("create.started");
    const driver = await driverFor(id, running, reopenable, opts.keep === true);
    if (opts.keep === true) await updateRecord(id, { state: "kept", reopen: reopenable });
    else markReady(id);
    await failpoint("create.ready");
    return driver;
  } catch (error) {
    await running?.remove().catch(() => undefined);
    // What cannot be taken away now stays in the ledger for `reap`.
    await dismantle(id, () => true, ownRemover).catch(() => undefined);
    throw error;
  }
}

async function driverFor(
  id: string,
  container: RunningContainer,
  { plan, imageEnv, network }: Reopen,
  keep: boolean,
): Promise<DockerDriver> {
  let driver: DockerDriver | undefined;
  const warn = (message: string): void => driver?.onWarning?.(message);
  // A list of names is kept by an empty network: what is on it is reached through a proxy.
  const proxied = typeof network === "string" ? {} : (await openEgress(container.channel, network.allow, warn)).env;
  driver = new DockerDriver({
    id,
    workDir: plan.workDir,
    capabilities: DOCKER_CAPABILITIES,
    baseEnv: { PATH: DEFAULT_PATH, LANG: "C.UTF-8", ...imageEnv, ...proxied },
    container,
    release: async () => {
      if (keep) {
        await container.stop();
        await updateRecord(id, { state: "kept", owner: undefined });
        return;
      }
      await container.remove();
      await dismantle(id, () => true, ownRemover);
    },
  });
  return driver;
}

async function reopen(id: string, opts: SandboxOptions): Promise<Sandbox> {
  const record = await claimRecord(id);
  try {
    const reopenable = record.reopen as Reopen;
    const engine = engineOf(reopenable.engine);
    const container = await resumeContainer(engine, reopenable.plan, opts.signal);
    return createSandbox(await driverFor(id, container, reopenable, opts.keep ?? true), opts);
  } catch (error) {
    await updateRecord(id, { owner: undefined });
    throw error;
  }
}

let reaped: Promise<unknown> | undefined;

/** Removes what dead processes left, the first time this process opens a sandbox. */
async function reapOnce(): Promise<void> {
  // What could not be removed is no reason not to go on: it stays in the ledger, where `listSandboxes` shows it.
  reaped ??= reapRecords(ownRemover, { backend: "docker" }).catch(() => undefined);
  await reaped;
}

/** What the conformance kit is to know about the backend. */
export const conformance: NonNullable<BackendModule["conformance"]> = {};
