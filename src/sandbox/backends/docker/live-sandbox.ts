import { randomBytes } from "node:crypto";
import type { Resource, SandboxEntry } from "../../../../contracts/backend.js";
import { SandboxError } from "../../../../contracts/errors.js";
import type { Capabilities } from "../../../../contracts/types.js";
import { snapshotInTime } from "../../../ledger.js";
import { failpoint } from "../../../machine/failpoint.js";
import { NO_REPOSITORY } from "../../capabilities.js";
import {
  type Egress,
  type LiveSecrets,
  networkOperations,
  openEgressFor,
  superviseEgress,
  type Trust,
  trustFor,
  withSecrets,
} from "../../egress.js";
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
import { GIVEN_LABEL, KEPT_LABEL, NAME_LABEL, ownerLabels, SANDBOX_LABEL } from "./labels.js";
import type { EngineResource } from "./resources.js";
import { checkTrust, installTrust, removeTrust, TRUST_FOLDER, withoutTrust } from "./trust.js";

/** What a container keeps. */
export const DOCKER_CAPABILITIES: Capabilities = {
  isolation: "container",
  killTree: "complete",
  network: ["none", "full", "allow"],
  liveNetwork: true,
  networkRules: true,
  limits: ["memory", "cpus", "pids"],
  snapshot: "consistent",
  fork: "copy-on-write",
  pty: true,
  user: true,
  workDir: true,
  paths: ["workdir", "sandbox"],
  combinedOutput: true,
  secrets: true,
  ports: true,
  git: true,
  keep: "all",
  renames: "all",
  reasons: { "limits.disk": "an engine can bound the files of a container only with XFS and project quotas" },
};

function capabilitiesWith(git: boolean): Capabilities {
  const { reasons } = DOCKER_CAPABILITIES;
  return { ...DOCKER_CAPABILITIES, git, reasons: { ...reasons, ...(!git && { git: NO_REPOSITORY }) } };
}

const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** What a container is attached to: only `full` needs a network, which has the name of the sandbox. */
export function networkOf(id: string, { network }: Pick<KeptPlan, "network">): ContainerPlan["network"] {
  return network === "full" ? { name: `glovebox-${id}`, aliases: [] } : "none";
}

/** What the engine shows of a sandbox's container, and what it is found by after a crash. */
export function labelsOf({ id, keep, name, labels }: Named): Record<string, string> {
  const given = Object.entries(labels).map(([key, value]) => [`${GIVEN_LABEL}${key}`, value]);
  return {
    ...(Object.fromEntries(given) as Record<string, string>),
    ...ownerLabels(),
    [SANDBOX_LABEL]: id,
    ...(keep && { [KEPT_LABEL]: "1" }),
    ...(name !== undefined && { [NAME_LABEL]: name }),
  };
}

type Named = Pick<SandboxEntry, "id" | "keep" | "name" | "labels">;

/** A sandbox in a container, as it is now: `restore` puts another container in its place. */
export class LiveSandbox {
  readonly #entry: SandboxEntry;
  readonly #opts: SandboxOptions;
  readonly #secrets: LiveSecrets;
  readonly #ending = new AbortController();
  #kept: KeptPlan;
  #forks = 0;
  #driver: DockerDriver | undefined;
  #egress: Egress | undefined;
  #trust: Promise<Trust | undefined> | undefined;
  #settled: () => Promise<void> = async () => undefined;

  /** `secrets`: those of this opening. */
  constructor(kept: KeptPlan, opts: SandboxOptions, entry: SandboxEntry, secrets: LiveSecrets) {
    this.#kept = kept;
    this.#opts = opts;
    this.#entry = entry;
    this.#secrets = secrets;
  }

  /** Makes the container and a driver for it; all of it or nothing. `resources`: what it needs beside. */
  async create(resources: readonly Resource[] = [], isFork = false): Promise<DockerDriver> {
    const { plan, base, engine: choice } = this.#kept;
    const { signal } = this.#entry;
    const engine = engineOf(choice);
    checkTrust(plan, await this.#trusted());
    const network =
      typeof plan.network === "string" ? [] : [{ kind: "network", name: plan.network.name, engine: choice }];
    const own: EngineResource = { kind: "container", name: plan.name, engine: choice };
    await this.#entry.createRecord({ workDir: plan.workDir, resources: [...resources, ...network, own] });
    let container: RunningContainer | undefined;
    try {
      await makeNetwork(plan, engine, signal);
      container = await startContainer(engine, plan, signal);
      await failpoint("create.started");
      const driver = await this.attach(container);
      if (base && isFork) await nameForkedBranch(mirroredTree(base, driver, this.signal));
      else if (base) for (const note of await fillMirror({ base }, driver, signal)) this.#entry.warn(note);
      return driver;
    } catch (error) {
      await container?.remove().catch(() => undefined);
      throw error;
    }
  }

  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** The driver of a container that runs. */
  async attach(container: RunningContainer): Promise<DockerDriver> {
    await this.#adoptTrust(container);
    const { plan, imageEnv, base } = this.#kept;
    await this.#savePlan();
    const proxied = await this.#openWay(container);
    const driver: DockerDriver = new DockerDriver({
      id: this.#entry.id,
      workDir: plan.workDir,
      capabilities: capabilitiesWith(base !== undefined),
      baseEnv: { PATH: DEFAULT_PATH, LANG: "C.UTF-8", ...imageEnv, ...proxied, ...this.#secrets.env },
      container,
      operations: (self) => this.#operations(self),
      release: () => this.#close(driver),
    });
    this.#driver = driver;
    return driver;
  }

  /** The authority of this opening. */
  #trusted(): Promise<Trust | undefined> {
    this.#trust ??= trustFor(this.#kept.network, this.#secrets);
    return this.#trust;
  }

  /** What an opening that crashed has left of its authority is removed, unless another takes its place. */
  async #adoptTrust(container: RunningContainer): Promise<void> {
    const { trusts, ...kept } = this.#kept;
    const trust = await this.#trusted();
    checkTrust(kept.plan, trust);
    if (trusts === true && trust === undefined) await removeTrust(container);
    this.#kept = kept;
  }

  async #savePlan(): Promise<void> {
    const trusts = (await this.#trusted()) !== undefined;
    await this.#entry.savePlan(trusts ? { ...this.#kept, trusts } : this.#kept);
  }

  /** Makes programs that start from now on trust another authority. */
  async #replaceTrust(container: RunningContainer, trust: Trust): Promise<void> {
    checkTrust(container.plan, trust);
    const before = this.#trust;
    this.#trust = Promise.resolve(trust);
    try {
      await this.#savePlan();
      await installTrust(container, trust, (work) => this.#driver?.frozen(work) ?? work());
    } catch (error) {
      this.#trust = before;
      throw error;
    }
  }

  /** A list of names is kept by an empty network: what is on it is reached through a proxy. */
  async #openWay(container: RunningContainer): Promise<Readonly<Record<string, string>>> {
    const trust = await this.#trusted();
    if (trust !== undefined) await installTrust(container, trust);
    this.#egress = await openEgressFor(container.channel, this.#kept.network, {
      ...superviseEgress(this.#entry, this.#opts),
      saveNetwork: (network) => this.#saveNetwork(network),
      trust: { made: trust, folder: TRUST_FOLDER, install: (next) => this.#replaceTrust(container, next) },
      secrets: this.#secrets,
      prepareNames: () => assertOwnNetwork(container.plan),
    });
    return this.#egress.env;
  }

  #way(): ReturnType<typeof networkOperations> {
    if (this.#egress === undefined) throw new SandboxError("closed", "The container has no way out");
    return networkOperations(this.#egress);
  }

  async #saveNetwork(network: KeptPlan["network"]): Promise<void> {
    const before = this.#kept;
    this.#kept = { ...before, network };
    try {
      await this.#savePlan();
      await this.#entry.saveNetwork(network);
    } catch (error) {
      this.#kept = before;
      throw error;
    }
  }

  /** Saves the files of the container, which have nothing of the authority meanwhile. */
  async #save<T>(container: RunningContainer, save: () => Promise<T>): Promise<T> {
    return await withoutTrust(container, await this.#trusted(), save);
  }

  #operations(driver: DockerDriver): DockerOperations {
    const { base } = this.#kept;
    const files: DockerOperations = {
      snapshot: (signal) =>
        driver.undisturbed((container) =>
          this.#save(container, () =>
            snapshotInTime(signal, () => saveSnapshot(this.#entry.id, container, this.#kept), removeSnapshot),
          ),
        ),
      restore: (snapshot) => this.#restore(driver, snapshot),
      fork: (count) => this.#fork(driver, count),
      openNetwork: async (allow) => await this.#way().openNetwork(allow),
      setNetwork: async (network) => await this.#way().setNetwork(network),
      setSecrets: async (secrets, signal) => await this.#way().setSecrets(secrets, signal),
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
      const name = `glovebox-${this.#entry.id}-${randomBytes(4).toString("hex")}`;
      const plan = { ...this.#kept.plan, name, image: config.id };
      const resource: EngineResource = { kind: "container", name, engine: this.#kept.engine };
      await this.#entry.record(resource);
      const container = await startContainer(old.engine, plan);
      await this.#openWay(container);
      this.#kept = { ...this.#kept, plan, layers: config.layers };
      await old.remove();
      await this.#entry.forget(({ name: gone }) => gone === old.plan.name);
      await this.#savePlan();
      return container;
    });
  }

  /** Makes copies of the container as it is now; all of them or none. */
  async #fork(driver: DockerDriver, count: number): Promise<DockerDriver[]> {
    const saved = await driver.undisturbed((container) =>
      this.#save(container, () => saveForForks(this.#entry.id, container, this.#kept)),
    );
    const create = (entry: SandboxEntry): Promise<DockerDriver> => {
      const { id } = entry;
      const { plan, engine } = this.#kept;
      const mirror = this.#kept.base && forkMirror({ base: this.#kept.base }, ++this.#forks);
      const image: EngineResource = { kind: "image", name: saved.name, engine };
      const labels = labelsOf(entry);
      const forked: KeptPlan = {
        ...this.#kept,
        plan: { ...plan, name: `glovebox-${id}`, image: saved.config.id, labels, network: networkOf(id, this.#kept) },
        layers: saved.config.layers,
        ...(mirror && { base: mirror.base }),
      };
      const resources = [...(mirror?.resources ?? []), image];
      return withSecrets(this.#opts, entry, (secrets) =>
        new LiveSandbox(forked, this.#opts, entry, secrets).create(resources, true),
      );
    };
    return await this.#entry.fork(count, create, { atOnce: true });
  }

  async #close({ container }: DockerDriver): Promise<void> {
    this.#ending.abort();
    await this.#settled();
    this.#secrets.close();
    if (!this.#entry.keep) return await container.remove();
    await container.stop();
    // If it fails, the next opening does it.
    if ((await this.#trusted()) !== undefined) await removeTrust(container).catch(() => undefined);
  }
}

/** Its own network: on the one that the engine offers to all, containers of different sandboxes see each other. */
async function makeNetwork({ network, labels }: ContainerPlan, engine: Engine, signal: AbortSignal): Promise<void> {
  if (typeof network === "string") return;
  await createNetwork(engine, { name: network.name, internal: false, members: 1, labels }, signal);
}

/** A resolver of ours on the machine's own loopback would be there for everybody. */
async function assertOwnNetwork({ unsafe }: ContainerPlan): Promise<void> {
  if (unsafe?.hostNetwork === true) throw new Error("it shares the network of the machine");
}
