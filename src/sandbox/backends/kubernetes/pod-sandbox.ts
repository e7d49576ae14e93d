import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Resource, SandboxEntry } from "../../../../contracts/backend.js";
import { SandboxError } from "../../../../contracts/errors.js";
import { snapshotInTime } from "../../../ledger.js";
import { failpoint } from "../../../machine/failpoint.js";
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
import { GuestFiles } from "../../guest.js";
import type { SandboxOptions } from "../../types.js";
import { fillFrom, removeArchive, restoreArchive, saveArchive, writeFiles } from "./archive.js";
import { baseEnvOf } from "./base-env.js";
import { capabilitiesWith } from "./capabilities.js";
import type { KubeClient } from "./client/kube-client.js";
import { clusterOf } from "./clusters.js";
import { KubernetesDriver, type KubernetesOperations } from "./driver.js";
import { marksOf } from "./labels.js";
import { deadlineOf, type KubernetesPlan } from "./plan.js";
import { type ClusterResource, removeResource } from "./resources.js";
import { connectPod, joinPod, type RunningPod, type StartOptions, startPod } from "./start-pod.js";
import { NoWarmPod } from "./warm/claim.js";
import { claimPod } from "./warm/claimed-pod.js";

/** In memory that every pod has, and that no image of it contains. */
const TRUST_FOLDER = "/dev/shm/glovebox";

/** A sandbox in a pod. */
export class PodSandbox {
  readonly #entry: SandboxEntry;
  readonly #opts: SandboxOptions;
  readonly #secrets: LiveSecrets;
  readonly #ending = new AbortController();
  #kept: KubernetesPlan;
  #forks = 0;
  #egress: Egress | undefined;
  #settled: () => Promise<void> = async () => undefined;

  /** `secrets`: those of this opening. */
  constructor(kept: KubernetesPlan, opts: SandboxOptions, entry: SandboxEntry, secrets: LiveSecrets) {
    this.#kept = kept;
    this.#opts = opts;
    this.#entry = entry;
    this.#secrets = secrets;
  }

  /** Makes the Job and a driver for its pod. `fill`: gives it its files, if they don't come from the repository. */
  async create(
    resources: readonly Resource[] = [],
    fill?: (driver: KubernetesDriver) => Promise<void>,
  ): Promise<KubernetesDriver> {
    const { pod: plan, base, cluster } = this.#kept;
    const { signal } = this.#entry;
    const client = await clusterOf(cluster);
    const own = this.#resource(this.#kept.pool === undefined ? "job" : "claim");
    await this.#entry.createRecord({ workDir: plan.workDir, resources: [...resources, own] });
    const pod = (await this.#takeWarm(client)) ?? (await startPod(client, this.#kept, this.#patience));
    try {
      await failpoint("create.started");
      const driver = await this.#attach(pod);
      if (fill) await fill(driver);
      if (base && fill) await nameForkedBranch(mirroredTree(base, driver, this.#ending.signal));
      else if (base) for (const note of await fillMirror({ base }, driver, signal)) this.#entry.warn(note);
      return driver;
    } catch (error) {
      await pod.stop().catch(() => undefined);
      throw error;
    }
  }

  /** Goes on with the pod of a kept sandbox. */
  async reopen(): Promise<KubernetesDriver> {
    const client = await clusterOf(this.#kept.cluster);
    const pod = await joinPod(client, this.#kept, this.#patience);
    try {
      return await this.#attach(pod);
    } catch (error) {
      await pod.stop().catch(() => undefined);
      throw error;
    }
  }

  /** A pod of the pool, where there is one. Without it, a Job is recorded in its place. */
  async #takeWarm(client: KubeClient): Promise<RunningPod | undefined> {
    const { pool } = this.#kept;
    if (pool === undefined) return undefined;
    const { signal, keep } = this.#entry;
    try {
      const pod = await claimPod(client, { ...this.#kept, pool }, signal);
      this.#kept = { ...this.#kept, claimed: pod.metadata.name };
      return await connectPod(client, this.#kept, pod, { signal, isFirst: true, keeps: keep });
    } catch (error) {
      const isTaken = error instanceof SandboxError && error.code === "conflict";
      if (!(error instanceof NoWarmPod || isTaken)) throw error;
      const { claimed: _, ...kept } = this.#kept;
      this.#kept = kept;
      await this.#entry.record(this.#resource("job"));
      const claim = this.#resource("claim");
      await removeResource(claim);
      await this.#entry.forget(({ kind }) => kind === claim.kind);
      this.#entry.warn(`The warm pool "${pool}" is passed by, a new pod is made: ${error.message}`);
      return undefined;
    }
  }

  #resource(kind: "job" | "claim"): ClusterResource {
    const { pod, cluster } = this.#kept;
    return { kind, name: pod.name, cluster };
  }

  get #patience(): StartOptions {
    return { signal: this.#entry.signal, onWait: (why) => this.#entry.progress(why) };
  }

  async #attach(pod: RunningPod): Promise<KubernetesDriver> {
    this.#kept = { ...this.#kept, podUid: pod.place.uid };
    const { pod: plan, base } = this.#kept;
    await this.#entry.savePlan(this.#kept);
    const proxied = await this.#openWay(pod);
    const driver: KubernetesDriver = new KubernetesDriver({
      id: this.#entry.id,
      workDir: plan.workDir,
      capabilities: capabilitiesWith(base !== undefined),
      baseEnv: { ...baseEnvOf(pod.env, plan), ...proxied, ...this.#secrets.env },
      pod,
      operations: (self) => this.#operations(self),
      release: () => this.#close(pod),
    });
    return driver;
  }

  /** A list of names is kept by a policy that lets nothing out: what is on it is reached through a proxy. */
  async #openWay(pod: RunningPod): Promise<Readonly<Record<string, string>>> {
    const { network } = this.#kept;
    const made = await trustFor(network, this.#secrets);
    const install = (trust: Trust): Promise<void> => installTrust(pod, trust);
    if (made !== undefined) await install(made);
    this.#egress = await openEgressFor(pod.channel, network, {
      ...superviseEgress(this.#entry, this.#opts),
      saveNetwork: (next) => this.#saveNetwork(next),
      trust: { made, folder: TRUST_FOLDER, install },
      secrets: this.#secrets,
    });
    return this.#egress.env;
  }

  async #saveNetwork(network: KubernetesPlan["network"]): Promise<void> {
    const before = this.#kept;
    this.#kept = { ...before, network };
    try {
      await this.#entry.savePlan(this.#kept);
      await this.#entry.saveNetwork(network);
    } catch (error) {
      this.#kept = before;
      throw error;
    }
  }

  #way(): ReturnType<typeof networkOperations> {
    if (this.#egress === undefined) throw new SandboxError("closed", "The pod has no way out");
    return networkOperations(this.#egress);
  }

  #operations(driver: KubernetesDriver): KubernetesOperations {
    const { base } = this.#kept;
    const save = async (): Promise<string> => (await saveArchive(driver, this.#entry, this.#kept)).id;
    const files: KubernetesOperations = {
      snapshot: (signal) => snapshotInTime(signal, save, removeArchive),
      restore: (id) => restoreArchive(driver, this.#kept, id),
      fork: (count) => this.#fork(driver, count),
      openNetwork: async (allow) => await this.#way().openNetwork(allow),
      setNetwork: async (network) => await this.#way().setNetwork(network),
      setSecrets: async (secrets, signal) => await this.#way().setSecrets(secrets, signal),
    };
    if (base === undefined) return files;
    const { changes, git, settled } = createOperations(mirroredTree(base, driver, this.#ending.signal), {
      token: this.#opts.githubToken,
    });
    this.#settled = settled;
    return { ...files, ...(changes && { changes }), ...(git && { git }) };
  }

  /** Makes copies of the sandbox as it is now; all of them or none. */
  async #fork(driver: KubernetesDriver, count: number): Promise<KubernetesDriver[]> {
    const files = join(this.#entry.directory, `fork-${randomBytes(6).toString("hex")}.tar`);
    try {
      await writeFiles(driver, files);
      const create = (entry: SandboxEntry): Promise<KubernetesDriver> => {
        const mirror = this.#kept.base && forkMirror({ base: this.#kept.base }, ++this.#forks);
        const { deadline: _before, ...spec } = this.#kept.pod;
        const pod = { ...spec, name: `glovebox-${entry.id}`, ...marksOf(entry), ...deadlineOf(entry) };
        const { podUid: _, claimed: __, ...kept } = this.#kept;
        const forked: KubernetesPlan = { ...kept, pod, ...(mirror && { base: mirror.base }) };
        return withSecrets(this.#opts, entry, (secrets) =>
          new PodSandbox(forked, this.#opts, entry, secrets).create(mirror?.resources, (fork) => fillFrom(fork, files)),
        );
      };
      return await this.#entry.fork(count, create, { atOnce: true });
    } finally {
      await rm(files, { force: true });
    }
  }

  async #close(pod: RunningPod): Promise<void> {
    this.#ending.abort();
    await this.#settled();
    this.#secrets.close();
    await pod.stop();
  }
}

/** Makes programs in a pod trust an authority, by files that variables name. */
async function installTrust(pod: RunningPod, trust: Trust): Promise<void> {
  const files = new GuestFiles(pod.channel, (path) => path).anywhere();
  for (const [name, content] of trust.files(undefined)) await files.write(`${TRUST_FOLDER}/${name}`, content, 0o644);
}
