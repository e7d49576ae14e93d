import { randomBytes } from "node:crypto";
import type { Capabilities } from "../../../../contracts/types.js";
import {
  addResource,
  createRecord,
  dismantle,
  markReady,
  type RemoverOf,
  type Resource,
  readRecord,
  snapshotInTime,
  updateRecord,
} from "../../../ledger.js";
import { failpoint } from "../../../machine/failpoint.js";
import { openEgress } from "../../egress.js";
import { createOperations, fillMirror, forkMirror, mirroredTree, nameForkedBranch } from "../../git.js";
import type { SandboxOptions } from "../../types.js";
import { type RunningContainer, startContainer } from "./container.js";
import type { ContainerPlan } from "./container-config.js";
import { DockerDriver, type DockerOperations } from "./driver.js";
import type { Engine } from "./engine/engine.js";
import { engineOf } from "./engine/engines.js";
import { createNetwork } from "./engine/network.js";
import { findSnapshot, removeSnapshot, saveForForks, saveSnapshot } from "./image/save-image.js";
import type { KeptPlan } from "./kept-plan.js";
import { ownerLabels, SANDBOX_LABEL } from "./labels.js";
import { type EngineResource, removeResource } from "./resources.js";

/** What removes the resources of this backend. */
export const ownRemover: RemoverOf = async () => removeResource;

/** What a container keeps. */
export const DOCKER_CAPABILITIES: Capabilities = {
  isolation: "container",
  killTree: "complete",
  network: ["none", "full", "allow"],
  limits: ["memory", "cpus", "pids"],
  snapshot: "consistent",
  fork: "copy-on-write",
  pty: true,
  user: true,
  ports: false,
  git: true,
  renames: "all",
};

const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** What a container is attached to: only `full` needs a network, which has the name of the sandbox. */
export function networkOf(id: string, { network }: Pick<KeptPlan, "network">): ContainerPlan["network"] {
  return network === "full" ? { name: `glovebox-${id}`, aliases: [] } : "none";
}

/** A new id of a sandbox. */
export function newSandboxId(): string {
  return randomBytes(8).toString("hex");
}

/** Makes the container of a sandbox and a driver for it; all of it or nothing. `resources`: what it needs beside. */
export async function makeSandbox(
  id: string,
  kept: KeptPlan,
  opts: SandboxOptions,
  { isFork = false, resources = [] }: { isFork?: boolean; resources?: readonly Resource[] } = {},
): Promise<DockerDriver> {
  const { plan, base, engine } = kept;
  const keep = opts.keep === true;
  const network = typeof plan.network === "string" ? [] : [{ kind: "network", name: plan.network.name, engine }];
  const own: EngineResource = { kind: "container", name: plan.name, engine };
  await createRecord({ id, backend: "docker", workDir: plan.workDir, resources: [...resources, ...network, own] });
  let container: RunningContainer | undefined;
  try {
    await failpoint("create.recorded");
    await makeNetwork(plan, engineOf(engine), opts.signal);
    container = await startContainer(engineOf(engine), plan, opts.signal);
    await failpoint("create.started");
    const live = new LiveSandbox(id, kept, opts);
    const driver = await live.attach(container);
    if (base && !isFork) await live.fill(driver, opts.signal);
    if (base && isFork) await nameForkedBranch(mirroredTree(base, driver, live.signal));
    // One that is ready too late must not be kept: nobody would be given its id.
    opts.signal?.throwIfAborted();
    if (keep) await updateRecord(id, { state: "kept", reopen: kept });
    else markReady(id);
    await failpoint("create.ready");
    return driver;
  } catch (error) {
    await container?.remove().catch(() => undefined);
    // What cannot be taken away now stays in the ledger for `reap`.
    await dismantle(id, () => true, ownRemover).catch(() => undefined);
    throw error;
  }
}

/** Its own network: on the one that the engine offers to all, containers of different sandboxes see each other. */
async function makeNetwork({ network, labels }: ContainerPlan, engine: Engine, signal?: AbortSignal): Promise<void> {
  if (typeof network === "string") return;
  await createNetwork(engine, { name: network.name, internal: false, members: 1, labels }, signal);
}

/** A sandbox in a container, as it is now: `restore` puts another container in its place. */
export class LiveSandbox {
  readonly #id: string;
  readonly #opts: SandboxOptions;
  readonly #ending = new AbortController();
  #kept: KeptPlan;
  #forks = 0;
  #settled: () => Promise<void> = async () => undefined;

  constructor(id: string, kept: KeptPlan, opts: SandboxOptions) {
    this.#id = id;
    this.#kept = kept;
    this.#opts = opts;
  }

  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** The driver of a container that runs. */
  async attach(container: RunningContainer): Promise<DockerDriver> {
    const { plan, imageEnv, base } = this.#kept;
    let driver: DockerDriver | undefined;
    const proxied = await this.#openWay(container, (message) => driver?.onWarning?.(message));
    driver = new DockerDriver({
      id: this.#id,
      workDir: plan.workDir,
      capabilities: { ...DOCKER_CAPABILITIES, git: base !== undefined },
      baseEnv: { PATH: DEFAULT_PATH, LANG: "C.UTF-8", ...imageEnv, ...proxied },
      container,
      operations: (self) => this.#operations(self),
      release: () => this.#release(driver as DockerDriver),
    });
    return driver;
  }

  /** Puts the files of the repository in. */
  async fill(driver: DockerDriver, signal: AbortSignal | undefined): Promise<void> {
    const { base } = this.#kept;
    if (base === undefined) return;
    const notes = await fillMirror({ base }, driver, signal);
    // Nobody listens yet.
    setImmediate(() => {
      for (const note of notes) driver.onWarning?.(note);
    });
  }

  /** A list of names is kept by an empty network: what is on it is reached through a proxy. */
  async #openWay(
    { channel }: RunningContainer,
    warn: (message: string) => void,
  ): Promise<Readonly<Record<string, string>>> {
    const { network } = this.#kept;
    return typeof network === "string" ? {} : (await openEgress(channel, network.allow, warn)).env;
  }

  #operations(driver: DockerDriver): DockerOperations {
    const { base } = this.#kept;
    const files: DockerOperations = {
      snapshot: (signal) =>
        driver.undisturbed((container) =>
          snapshotInTime(signal, () => saveSnapshot(this.#id, container, this.#kept), removeSnapshot),
        ),
      restore: (snapshot) => this.#restore(driver, snapshot),
      fork: (count) => this.#fork(driver, count),
    };
    if (base === undefined) return files;
    const { changes, git, settled } = createOperations(mirroredTree(base, driver, this.signal), {
      token: this.#opts.githubToken,
    });
    this.#settled = settled;
    return { ...files, ...(changes && { changes }), ...(git && { git }) };
  }

  async #restore(driver: DockerDriver, snapshot: string): Promise<void> {
    const { config } = await findSnapshot(snapshot, this.#kept);
    await driver.replace(async (old) => {
      const name = `glovebox-${this.#id}-${randomBytes(4).toString("hex")}`;
      const plan = { ...this.#kept.plan, name, image: config.id };
      const resource: EngineResource = { kind: "container", name, engine: this.#kept.engine };
      await addResource(this.#id, resource);
      const container = await startContainer(old.engine, plan);
      await this.#openWay(container, (message) => driver.onWarning?.(message));
      this.#kept = { ...this.#kept, plan, layers: config.layers };
      await old.remove();
      await this.#note(old.plan.name);
      return container;
    });
  }

  /** Writes down that a container has gone, and which one is there now. */
  async #note(gone: string): Promise<void> {
    const resources = (await readRecord(this.#id))?.resources ?? [];
    await updateRecord(this.#id, {
      resources: resources.filter((resource) => (resource as Partial<EngineResource>).name !== gone),
      ...(this.#opts.keep === true && { reopen: this.#kept }),
    });
  }

  /** Makes copies of the container as it is now; all of them or none. */
  async #fork(driver: DockerDriver, count: number): Promise<DockerDriver[]> {
    const saved = await driver.undisturbed((container) => saveForForks(this.#id, container, this.#kept));
    const { signal: _, ...opts } = this.#opts;
    const made = await Promise.allSettled(
      Array.from({ length: count }, () => {
        const id = newSandboxId();
        const { plan, engine } = this.#kept;
        const mirror = this.#kept.base && forkMirror({ base: this.#kept.base }, ++this.#forks);
        const image: EngineResource = { kind: "image", name: saved.name, engine };
        const labels = { ...plan.labels, ...ownerLabels(), [SANDBOX_LABEL]: id };
        const forked: KeptPlan = {
          ...this.#kept,
          plan: { ...plan, name: `glovebox-${id}`, image: saved.config.id, labels, network: networkOf(id, this.#kept) },
          layers: saved.config.layers,
          ...(mirror && { base: mirror.base }),
        };
        return makeSandbox(id, forked, opts, { isFork: true, resources: [...(mirror?.resources ?? []), image] });
      }),
    );
    const failed = made.find((each) => each.status === "rejected");
    const drivers = made.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
    if (failed === undefined) return drivers;
    for (const each of drivers) await each.destroy().catch(() => undefined);
    throw failed.reason;
  }

  async #release(driver: DockerDriver): Promise<void> {
    this.#ending.abort();
    await this.#settled();
    const { container } = driver;
    if (this.#opts.keep === true) {
      await container.stop();
      await updateRecord(this.#id, { state: "kept", owner: undefined });
      return;
    }
    await container.remove();
    await dismantle(this.#id, () => true, ownRemover);
  }
}
