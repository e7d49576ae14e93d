import { randomBytes } from "node:crypto";
import type { Backend, ForkOptions, Resource, SandboxEntry, SnapshotRecord } from "../../../contracts/backend.js";
import type { Driver } from "../../../contracts/driver.js";
import { SandboxError } from "../../../contracts/errors.js";
import type { NetworkPolicy, SecretRule } from "../../../contracts/types.js";
import {
  addResource,
  claimName,
  createRecord,
  dropResources,
  freeName,
  markReady,
  rememberedRecord,
  removeRecorded,
  removerFor,
  type SandboxRules,
  updateRecord,
} from "../../ledger.js";
import { failpoint } from "../../machine/failpoint.js";
import { runtimeDir } from "../../machine/home.js";
import { isoTime } from "../../util/iso-time.js";
import { changeLive } from "./live-sandboxes.js";
import { assertNetwork } from "./policy.js";
import { isLeftOver } from "./reap-records.js";

/** How long to wait for a busy service when a failed opening is undone, in milliseconds. */
const UNDO_PATIENCE = 20_000;

/** What one sandbox is opened with. */
export interface EntryOptions {
  readonly backend: Backend;
  readonly keep: boolean;
  /** Deadline of each of its operations, including its removal, in milliseconds. */
  readonly operationTimeout: number;
  readonly rules: SandboxRules;
  readonly name?: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  /** What made it, if it has a name. */
  readonly made?: Readonly<Record<string, string>> | undefined;
  readonly envNames: readonly string[];
  readonly keepsAll: boolean;
  /** Throws if a policy forbids another one of the same kind. */
  readonly assertAllowed?:
    | ((entry: Pick<OpenEntry, "createdAt" | "expiresAt" | "network">) => Promise<void>)
    | undefined;
  readonly onProgress?: ((id: string, message: string) => void) | undefined;
}

/** How an entry starts: as a kept one, or with the files of a snapshot. */
interface EntryStart {
  readonly id?: string;
  readonly signal?: AbortSignal | undefined;
  readonly snapshot?: SnapshotRecord | undefined;
  /** ISO 8601. Absent: never. */
  readonly expiresAt?: string | undefined;
}

const entries = new WeakMap<Driver, OpenEntry>();

/** The entry of a driver that runs. */
export function entryOf(driver: Driver): OpenEntry | undefined {
  return entries.get(driver);
}

/** Closes a sandbox: removes everything it made, or leaves the files of a kept one to be reopened, unless it has expired. */
export async function closeDriver(driver: Driver, isExpired = false): Promise<void> {
  const entry = entries.get(driver);
  if (isExpired) entry?.discard();
  await entry?.close(driver);
}

/** The one place where a sandbox gets its record, becomes ready, is kept, closed and removed. */
export class OpenEntry implements SandboxEntry {
  readonly id: string;
  readonly signal: AbortSignal;
  declare readonly snapshot?: SnapshotRecord;
  declare readonly expiresAt?: string;
  readonly #opts: EntryOptions;
  readonly #opening = new AbortController();
  #keep: boolean;
  /** Whether the record says so, too: then the sandbox stays when this process dies. */
  #isKept: boolean;
  #state: "new" | "recorded" | "ready" = "new";
  #plan: unknown;
  #driver: Driver | undefined;
  #rules: SandboxRules;
  readonly #warnings: string[] = [];

  /** With `id`: the entry of a kept sandbox that is reopened. */
  constructor(opts: EntryOptions, { id, signal, snapshot, expiresAt }: EntryStart = {}) {
    this.id = id ?? newId();
    if (expiresAt !== undefined) this.expiresAt = expiresAt;
    if (snapshot !== undefined) this.snapshot = snapshot;
    this.#isKept = id !== undefined;
    this.#opts = opts;
    this.#keep = opts.keep;
    this.#rules = opts.rules;
    this.signal = this.#opening.signal;
    const abort = (): void => {
      if (this.#state !== "ready") this.#opening.abort(signal?.reason);
    };
    if (signal?.aborted === true) abort();
    signal?.addEventListener("abort", abort, { once: true });
  }

  get name(): string | undefined {
    return this.#opts.name;
  }

  get labels(): Readonly<Record<string, string>> {
    return this.#opts.labels;
  }

  get createdAt(): string {
    return rememberedRecord(this.id)?.createdAt ?? isoTime();
  }

  get keepsAll(): boolean {
    return this.#opts.keepsAll;
  }

  get keep(): boolean {
    return this.#keep;
  }

  get directory(): string {
    return runtimeDir(this.id);
  }

  get resources(): readonly Resource[] {
    return rememberedRecord(this.id)?.resources ?? [];
  }

  async createRecord(first: { workDir?: string; resources?: readonly Resource[] }): Promise<void> {
    const { id, expiresAt } = this;
    const { backend, name, labels, made } = this.#opts;
    const own = { ...(name && { name }), ...(hasAny(labels) && { labels }), ...(made && { made }) };
    const more = { ...own, ...(expiresAt !== undefined && { expiresAt }) };
    await createRecord({ id, backend: backend.name, workDir: "", ...more, ...first });
    this.#state = "recorded";
    await failpoint("create.recorded");
  }

  async record(...resources: readonly Resource[]): Promise<void> {
    await addResource(this.id, ...resources);
  }

  async forget(isGone: (resource: Resource) => boolean): Promise<void> {
    await dropResources(this.id, isGone);
  }

  async savePlan(plan: unknown): Promise<void> {
    this.#plan = plan;
    if (this.#isKept) await updateRecord(this.id, { reopen: plan });
  }

  get network(): NetworkPolicy {
    return this.#rules.network;
  }

  async saveNetwork(network: NetworkPolicy): Promise<void> {
    const rules = { ...this.#rules, network };
    if (this.#isKept) await updateRecord(this.id, { rules });
    this.#rules = rules;
    changeLive(this.id, { network });
  }

  get secrets(): Readonly<Record<string, SecretRule>> {
    return (this.#rules.options["secrets"] ?? {}) as Readonly<Record<string, SecretRule>>;
  }

  async saveSecrets(secrets: Readonly<Record<string, SecretRule>>): Promise<void> {
    const rules = { ...this.#rules, options: { ...this.#rules.options, secrets } };
    if (this.#isKept) await updateRecord(this.id, { rules });
    this.#rules = rules;
    changeLive(this.id, { secrets });
  }

  async checkNetwork(network: NetworkPolicy): Promise<void> {
    await assertNetwork(network);
  }

  warn(message: string): void {
    if (this.#driver?.onWarning !== undefined) this.#driver.onWarning(message);
    else this.#warnings.push(message);
  }

  progress(message: string): void {
    this.#opts.onProgress?.(this.id, message);
  }

  /** Passes on the warnings of the backend from before anybody could listen. */
  deliverWarnings(): void {
    for (const message of this.#warnings.splice(0)) this.#driver?.onWarning?.(message);
  }

  discard(): void {
    this.#keep = false;
  }

  async fork<D extends Driver>(
    count: number,
    create: (entry: SandboxEntry, n: number) => Promise<D>,
    { atOnce = false, around = (makeAll) => makeAll(), complete }: ForkOptions<D> = {},
  ): Promise<D[]> {
    await this.#opts.assertAllowed?.(this);
    const forks = Array.from({ length: count }, (_, index) => ({
      // No two sandboxes have the same name.
      entry: new OpenEntry(
        { ...this.#opts, rules: this.#rules, name: undefined, made: undefined, keep: this.#keep },
        { expiresAt: this.expiresAt },
      ),
      n: index + 1,
      driver: undefined as D | undefined,
    }));
    const make = async (fork: (typeof forks)[number]): Promise<void> => {
      fork.driver = await create(fork.entry, fork.n);
      await failpoint("fork.made");
    };
    const makeAll = async (): Promise<void> => {
      if (atOnce) await allSettled(forks.map(make));
      else for (const fork of forks) await make(fork);
    };
    try {
      await around(makeAll);
      const drivers = forks.flatMap(({ driver }) => driver ?? []);
      await complete?.(drivers);
      for (const { entry, driver } of forks) if (driver !== undefined) await entry.#becomeReady(driver);
      return drivers;
    } catch (error) {
      await Promise.all(forks.map(({ entry, driver }) => entry.#undo(driver)));
      throw error;
    }
  }

  /** Makes the sandbox: all of it or nothing. `fill` puts the files of the snapshot in place, if it starts with one. */
  async create(
    make: () => Promise<Driver>,
    fill?: (driver: Driver, snapshot: SnapshotRecord) => Promise<void>,
  ): Promise<Driver> {
    let driver: Driver | undefined;
    const { name, backend } = this.#opts;
    try {
      if (name !== undefined) await takeName(name, this.id, backend, this.signal);
      driver = await make();
      if (this.snapshot !== undefined) await fill?.(driver, this.snapshot);
      await this.#becomeReady(driver);
      return driver;
    } catch (error) {
      await this.#undo(driver);
      throw error;
    }
  }

  /** Attaches the driver of a kept sandbox that runs again. */
  reopened(driver: Driver, plan: unknown): void {
    this.#plan ??= plan;
    this.#use(driver);
  }

  /** Closes the sandbox. What can't be removed stays in the ledger. */
  async close(driver: Driver): Promise<void> {
    if (this.#keep) {
      await (await driver.close())?.gone;
      const plan = this.#plan === undefined ? {} : { reopen: this.#plan };
      if (this.#keep) return void (await updateRecord(this.id, { state: "kept", owner: undefined, ...plan }));
    }
    const closing = Promise.resolve<Awaited<ReturnType<Driver["close"]>>>(driver.close());
    const ended = closing.then(() => failpoint("teardown.stopped"));
    ended.catch(() => undefined);
    await this.#remove(this.#opts.operationTimeout, ended);
    await (await closing)?.gone;
  }

  async #becomeReady(driver: Driver): Promise<void> {
    const { id, workDir, hostDir } = driver;
    if (id !== this.id)
      throw new SandboxError("internal", `The driver's id "${id}" is not that of its entry, "${this.id}"`);
    if (this.#state === "new") await this.createRecord({ workDir });
    // A sandbox that is ready too late must not be kept: nobody would get its id.
    this.signal.throwIfAborted();
    if (this.#keep) {
      const { envNames, keepsAll } = this.#opts;
      const rules = this.#rules;
      const more = { ...(envNames.length > 0 && { envNames }), ...(keepsAll && { keepsAll }) };
      await updateRecord(this.id, { state: "kept", workDir, hostDir, rules, ...more, reopen: this.#plan });
      this.#isKept = true;
    } else {
      if (rememberedRecord(this.id)?.workDir !== workDir) await updateRecord(this.id, { workDir });
      markReady(this.id);
    }
    await failpoint("create.ready");
    this.#use(driver);
  }

  #use(driver: Driver): void {
    this.#state = "ready";
    this.#driver = driver;
    entries.set(driver, this);
  }

  async #undo(driver: Driver | undefined): Promise<void> {
    this.#keep = false;
    try {
      await (await driver?.close())?.gone;
    } finally {
      // What can't be removed now stays in the ledger for `reap`.
      if (this.#state !== "new") await this.#remove(UNDO_PATIENCE).catch(() => undefined);
      else if (this.#opts.name !== undefined) await freeName(this.#opts.name, this.id).catch(() => undefined);
    }
  }

  async #remove(patience: number, ended?: Promise<void>): Promise<void> {
    await removeRecorded(this.id, () => true, removerFor(this.#opts.backend, patience), ended);
  }
}

/** Takes a name for a sandbox that is about to be made; removes what a dead process left under it. */
async function takeName(name: string, id: string, backend: Backend, signal: AbortSignal): Promise<void> {
  const left = await claimName(name, id, isLeftOver, signal);
  if (left === undefined) return;
  if (left.backend === backend.name) {
    await removeRecorded(left.id, isLeftOver, removerFor(backend, UNDO_PATIENCE));
    if ((await claimName(name, id, isLeftOver, signal)) === undefined) return;
  }
  throw new SandboxError("conflict", `The name "${name}" is in use: a dead process left sandbox ${left.id}`, {
    retryable: false,
    hint: "remove what dead processes left (glovebox reap), then try again",
  });
}

function hasAny(labels: Readonly<Record<string, string>>): boolean {
  return Object.keys(labels).length > 0;
}

/** Waits for all of them, then throws the first failure. */
async function allSettled(work: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(work)).find((each) => each.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}

function newId(): string {
  return randomBytes(8).toString("hex");
}
