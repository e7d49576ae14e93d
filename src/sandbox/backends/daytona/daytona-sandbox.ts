import { randomBytes } from "node:crypto";
import type { SandboxEntry } from "../../../../contracts/backend.js";
import { SandboxError } from "../../../../contracts/errors.js";
import type { Capabilities, NetworkPolicy } from "../../../../contracts/types.js";
import { snapshotInTime } from "../../../ledger.js";
import { failpoint } from "../../../machine/failpoint.js";
import { NO_REPOSITORY } from "../../capabilities.js";
import type { SandboxOptions } from "../../types.js";
import { bootstrap } from "./bootstrap.js";
import { type Connection, connect, type RemoteSandbox } from "./client.js";
import { createRemote, fitRemote, type RemotePlan, wasRefused } from "./create-remote.js";
import type { DaytonaOptions } from "./daytona-options.js";
import { DaytonaDriver, type DaytonaOperations } from "./driver.js";
import { isBetweenStates, isPassing, persist, statusOf, toFailure } from "./failure.js";
import { gitOperations } from "./git-operations.js";
import { type GuestSession, type Place, startGuest, uploadGuest } from "./guest-session.js";
import { keepAlive } from "./keep-alive.js";
import { findNativeSnapshot, removeSnapshot, takeNativeSnapshot, withMachineCopy } from "./native-snapshot.js";
import { networkSettings } from "./network-settings.js";
import { type Account, readLifetime, type Source } from "./options.js";
import { remoteResource, removeResource } from "./remove.js";

/** How long the service may take to change a state, in milliseconds. */
const SETTLED_WITHIN = 60_000;

/** What a sandbox is made from, and what is saved of a kept one. Never a key or a token. */
export interface DaytonaPlan {
  readonly source?: Source | undefined;
  readonly branch?: string | undefined;
  readonly network: NetworkPolicy;
  /** Sizes and times of the machine, which also apply to one that replaces it. */
  readonly machine?: Pick<DaytonaOptions, "snapshot" | "resources" | "autoStopMinutes" | "ttlMinutes">;
  /** The name of the current machine at the service; `restore` changes it. */
  name: string;
  place?: Place;
  /** The commit that it started from. */
  base?: string | undefined;
}

const SIZES = "the service only has sizes in whole cores and GiB: daytona.resources";

/** What the backend enforces. */
export function daytonaCapabilities(git: boolean): Capabilities {
  return {
    isolation: "remote",
    killTree: "descendants",
    network: ["none", "full", "allow"],
    limits: [],
    snapshot: "crash-consistent",
    fork: "copy",
    pty: true,
    user: false,
    workDir: true,
    paths: ["workdir", "sandbox"],
    combinedOutput: true,
    ports: true,
    git,
    keep: "all",
    reasons: {
      networkRules: "the service allows hosts by name, and looks at nothing else",
      "limits.memory": SIZES,
      "limits.cpus": SIZES,
      "limits.disk": SIZES,
      "limits.pids": "the service has no limit on processes",
      liveNetwork: "its connections don't pass through this process, and the service applies rules of its own",
      secrets: "its machines reach the network without the proxy that would put them in",
      user: "commands run as the user of the machine's image",
      ...(!git && { git: NO_REPOSITORY }),
    },
  };
}

/** One sandbox at the service, from its creation to its removal. */
export class DaytonaSandbox {
  readonly #account: Account;
  readonly #opts: SandboxOptions;
  readonly #entry: SandboxEntry;
  readonly #plan: DaytonaPlan;
  readonly #connection: Connection;
  #endHeartbeat: () => void = () => undefined;

  constructor(account: Account, opts: SandboxOptions, entry: SandboxEntry, plan: DaytonaPlan, connection: Connection) {
    this.#account = account;
    this.#opts = opts;
    this.#entry = entry;
    this.#plan = plan;
    this.#connection = connection;
  }

  /** Makes a new sandbox: all of it or nothing; from a saved machine, or fresh. */
  static async create(
    account: Account,
    opts: SandboxOptions,
    entry: SandboxEntry,
    plan: Omit<DaytonaPlan, "name">,
    saved?: Saved,
  ): Promise<DaytonaDriver> {
    const { id } = entry;
    const own = { ...plan, name: `glovebox-${id}` };
    const resources = [remoteResource("daytona-sandbox", own.name, account)];
    const workDir = own.place?.workDir ?? opts.workDir ?? `/home/daytona/workspace/${own.source?.name ?? id}`;
    // First: without a client, nobody could remove the record.
    const connection = await connect(account);
    try {
      await entry.createRecord({ workDir, resources });
      const sandbox = new DaytonaSandbox(account, opts, entry, own, connection);
      const driver = await sandbox.#make(saved);
      await entry.savePlan(sandbox.#plan);
      return driver;
    } catch (error) {
      await connection.close();
      throw error;
    }
  }

  /** Reopens a kept sandbox. */
  static async reopen(
    account: Account,
    opts: SandboxOptions,
    entry: SandboxEntry,
    plan: DaytonaPlan,
  ): Promise<DaytonaDriver> {
    const { place } = plan;
    if (place === undefined) throw new SandboxError("not_found", `The sandbox "${entry.id}" was never finished`);
    const connection = await connect(account);
    try {
      remoteResource("daytona-sandbox", plan.name, account);
      const remote = await startMachine(connection, plan.name);
      await uploadGuest(remote, place);
      const sandbox = new DaytonaSandbox(account, opts, entry, plan, connection);
      return sandbox.#start(remote, place, await startGuest(remote, place));
    } catch (error) {
      await connection.close();
      throw error;
    }
  }

  async #make(saved: Saved | undefined): Promise<DaytonaDriver> {
    const { source, branch, network, name } = this.#plan;
    const rules = networkSettings(network);
    // A repository is cloned from within the sandbox, so the network is restricted after that.
    const atOnce = source === undefined || saved !== undefined ? rules : {};
    const remote = await this.#request({
      ...{ entry: this.#entry, name, opts: this.#opts, network: atOnce },
      ...(saved === undefined ? undefined : { snapshot: saved.snapshot }),
    });
    await failpoint("create.registered");
    this.#entry.signal.throwIfAborted();
    if (saved !== undefined) {
      await uploadGuest(remote, saved.place);
      const guest = await startGuest(remote, saved.place);
      return this.#start(remote, saved.place, guest);
    }
    const token = this.#token();
    const { workDir } = this.#opts;
    const made = await bootstrap(remote, { id: this.#entry.id, source, branch, workDir, token, network: rules });
    this.#plan.base = made.guest.head;
    await failpoint("create.started");
    this.#entry.signal.throwIfAborted();
    return this.#start(remote, made.place, made.guest);
  }

  async #request(plan: RemotePlan): Promise<RemoteSandbox> {
    let remote: RemoteSandbox;
    try {
      remote = await createRemote(this.#connection.client, plan);
    } catch (error) {
      // The service refused: there is nothing to remove, and perhaps no permission to.
      if (wasRefused(error)) await this.#entry.forget(() => true);
      throw error;
    }
    await fitRemote(remote, plan);
    return remote;
  }

  #start(remote: RemoteSandbox, place: Place, guest: GuestSession): DaytonaDriver {
    this.#plan.place = place;
    const driver = new DaytonaDriver({
      ...{ id: this.#entry.id, remote, place, guest },
      capabilities: daytonaCapabilities(this.#plan.source !== undefined),
      operations: (own) => this.#operations(own),
      close: (own) => this.#close(own),
    });
    const third = (readLifetime(this.#opts).autoStop * 60_000) / 3;
    this.#endHeartbeat = keepAlive(
      () => driver.remote.refreshActivity(),
      third,
      (message) => this.#entry.warn(message),
    );
    return driver;
  }

  #operations(driver: DaytonaDriver): DaytonaOperations {
    const { source, branch, base, network } = this.#plan;
    const fork = (count: number): Promise<DaytonaDriver[]> => this.#fork(driver, count);
    if (source !== undefined && base !== undefined) {
      return { ...gitOperations(driver, { source, branch, base, network, token: this.#token() }), fork };
    }
    return {
      fork,
      snapshot: (signal) => snapshotInTime(signal, () => takeNativeSnapshot(driver, this.#account), removeSnapshot),
      restore: async (id) => this.#restore(driver, await findNativeSnapshot(id)),
    };
  }

  /** Copies of the machine as it is now: all of them or none. */
  async #fork(driver: DaytonaDriver, count: number): Promise<DaytonaDriver[]> {
    const { name: _, ...plan } = this.#plan;
    const { id: __, ...opts } = this.#opts;
    return await withMachineCopy(driver, this.#account, async (snapshot) => {
      const saved = { snapshot, place: driver.place };
      const create = async (entry: SandboxEntry, n: number): Promise<DaytonaDriver> => {
        const branch = plan.branch === undefined ? undefined : `${plan.branch}-fork-${n}`;
        const fork = await DaytonaSandbox.create(this.#account, opts, entry, { ...plan, branch }, saved);
        if (branch !== undefined) await checkOut(fork, branch);
        return fork;
      };
      return await this.#entry.fork(count, create, { atOnce: true });
    });
  }

  /** Replaces the machine with a new one that has the saved files, and deletes the old one. */
  async #restore(driver: DaytonaDriver, snapshot: string): Promise<void> {
    const old = this.#plan.name;
    const { id } = this.#entry;
    const name = `glovebox-${id}-${randomBytes(4).toString("hex")}`;
    const resource = remoteResource("daytona-sandbox", name, this.#account);
    await this.#entry.record(resource);
    try {
      const network = networkSettings(this.#plan.network);
      const plan = { entry: this.#entry, name, opts: this.#opts, network, snapshot };
      const remote = await createRemote(this.#connection.client, plan);
      await fitRemote(remote, plan);
      await uploadGuest(remote, driver.place);
      await driver.replace(remote, await startGuest(remote, driver.place));
    } catch (error) {
      await this.#removeMachine(name).catch(() => undefined);
      throw error;
    }
    this.#plan.name = name;
    await this.#entry.savePlan(this.#plan);
    await this.#removeMachine(old);
  }

  async #removeMachine(name: string): Promise<void> {
    await removeResource(remoteResource("daytona-sandbox", name, this.#account));
    await this.#entry.forget((resource) => resource["name"] === name);
  }

  async #close(driver: DaytonaDriver): Promise<void> {
    this.#endHeartbeat();
    if (this.#entry.keep) {
      await driver.stop();
      // A stopped machine only costs disk space and can be reopened. One that is gone can't be kept.
      if (!(await whenSettled(() => stopMachine(driver.remote)))) this.#entry.discard();
      else await this.#entry.savePlan(this.#plan);
    }
    driver.closeChannel();
    await this.#connection.close();
  }

  #token(): string | undefined {
    return this.#opts.githubToken ?? (process.env["GITHUB_TOKEN"] || undefined);
  }
}

/** A saved machine, and its directories. */
interface Saved {
  readonly snapshot: string;
  readonly place: Place;
}

/** Starts a machine by its name. */
async function startMachine({ client }: Connection, name: string): Promise<RemoteSandbox> {
  try {
    const remote = await persist(() => client.get(name));
    // A stop also ends what a dead process left running in it.
    if (remote.state === "started" || remote.state === "starting") await whenSettled(() => stopMachine(remote));
    await whenSettled(() => remote.start());
    return remote;
  } catch (error) {
    throw toFailure(error, `sandbox ${name} could not be opened again`);
  }
}

/** Waits for a state change that is under way, then makes another. */
async function whenSettled<T>(change: () => Promise<T>): Promise<T> {
  try {
    return await persist(change, (error) => isPassing(error) || isBetweenStates(error), SETTLED_WITHIN);
  } catch (error) {
    throw toFailure(error, "the sandbox does not come to another state");
  }
}

/** Stops a machine; false if it no longer exists. */
async function stopMachine(remote: RemoteSandbox): Promise<boolean> {
  try {
    await remote.stop();
    return true;
  } catch (error) {
    const state = await remote.refreshData().then(
      () => remote.state,
      (second: unknown) => (statusOf(second) === 404 ? "destroyed" : undefined),
    );
    if (state === "destroyed" || state === "destroying") return false;
    if (state === "stopped" || state === "archived") return true;
    if (isBetweenStates(error)) throw error;
    throw toFailure(error, `sandbox ${remote.name} could not be stopped`);
  }
}

/** With git itself: the service's own checkout is not safe if the tree has changes. */
async function checkOut(driver: DaytonaDriver, branch: string): Promise<void> {
  const { exitCode, stderr } = await driver.run(["git", "checkout", "--quiet", "-B", branch]);
  if (exitCode !== 0) throw new SandboxError("internal", `The branch "${branch}" could not be made: ${stderr.trim()}`);
}
