import { randomBytes } from "node:crypto";
import type { Capabilities } from "../../contracts/types.js";
import { claimRecord, dismantle, type RemoverOf } from "./dismantle.js";
import { SandboxError, toSandboxError } from "./errors.js";
import { failpoint } from "./failpoint.js";
import { setInsideBranch } from "./git/inside-git.js";
import { sweepScratch } from "./git/live-tree.js";
import { fillMirror, mirrorResources, planMirror } from "./git/mirror.js";
import { removeGitResource } from "./git/remove-git-resource.js";
import { addResource, createRecord, markReady, readRecord, updateRecord } from "./ledger.js";
import { validateSandboxOptions } from "./options.js";
import { createSandbox } from "./portable.js";
import { reapRecords } from "./reap-records.js";
import type { Resource } from "./record.js";
import { readSnapshotRecord, type SnapshotRecord, writeSnapshotRecord } from "./snapshot-record.js";
import type { Sandbox, SandboxOptions } from "./types.js";
import { conformance, vercelCapabilities } from "./vercel/capabilities.js";
import { connect, connectTo, type VercelClient } from "./vercel/client.js";
import { VercelDriver } from "./vercel/driver.js";
import { toVercelError } from "./vercel/failure.js";
import { gitSource, prepareRepository } from "./vercel/git-source.js";
import { Machine } from "./vercel/machine.js";
import {
  createMachine,
  type MachineSource,
  removeMachine,
  removeServiceSnapshot,
  resumeMachine,
  stopMachine,
} from "./vercel/machines.js";
import { probe } from "./vercel/probe.js";
import { branchOf, forkOrigin, type Origin, repositoryOperations, sourceOf } from "./vercel/repository.js";
import { toSettings, type VercelSettings } from "./vercel/settings.js";

export { conformance, probe };

/** What a sandbox with a repository keeps. */
export function capabilities(): Capabilities {
  return vercelCapabilities(true);
}

/** What a kept sandbox remembers of how it was made. Never a secret. */
interface Reopen {
  readonly name: string;
  readonly teamId: string;
  readonly projectId: string;
  readonly settings: VercelSettings;
  readonly origin?: Origin;
}

interface MachineResource {
  readonly kind: "vercel-machine";
  readonly name: string;
  readonly teamId: string;
  readonly projectId: string;
}

/** One sandbox in the making: who it is and how its machines are made. */
interface Plan {
  readonly id: string;
  readonly client: VercelClient;
  readonly settings: VercelSettings;
  readonly opts: SandboxOptions;
  readonly keep: boolean;
  /** What its files started from, where that is a repository. */
  origin: Origin | undefined;
  /** Aborts the creation, and nothing after it. */
  signal: AbortSignal | undefined;
  /** Set once there is a driver to tell. */
  warn(message: string): void;
}

/** Opens a sandbox in a machine of the Vercel Sandbox service. */
export async function createVercelSandbox(opts: SandboxOptions = {}): Promise<Sandbox> {
  validateSandboxOptions(opts);
  try {
    opts.signal?.throwIfAborted();
    const settings = toSettings(opts);
    const client = await connect(opts.vercel);
    await reapOnce();
    return opts.id === undefined ? await createNew(client, settings, opts) : await reopen(opts.id, client, opts);
  } catch (error) {
    if (opts.signal?.aborted) {
      throw new SandboxError("aborted", "The creation of the sandbox was aborted", {
        backend: "vercel",
        operation: "open",
        cause: error,
      });
    }
    throw toSandboxError(error, { backend: "vercel", operation: "open" });
  }
}

/** What the registry calls. */
export function open(opts: SandboxOptions): Promise<Sandbox> {
  return createVercelSandbox(opts);
}

/** Takes away a machine that a record of the ledger names. */
export async function removeResource(resource: Resource): Promise<void> {
  if (await removeGitResource(resource)) return;
  if (resource.kind !== "vercel-machine") return;
  const { name, teamId, projectId } = resource as unknown as MachineResource;
  await removeMachine(await connectTo(teamId, projectId), name);
}

/** Deletes a snapshot of the service. */
export async function removeSnapshot(record: SnapshotRecord): Promise<void> {
  const { snapshotId, teamId, projectId } = detailsOf(record);
  await removeServiceSnapshot(await connectTo(teamId, projectId), snapshotId);
}

async function createNew(client: VercelClient, settings: VercelSettings, opts: SandboxOptions): Promise<Sandbox> {
  const plan = planOf(newId(), client, settings, opts, opts.keep === true);
  const warnings: string[] = [];
  const driver = await makeDriver(plan, await planRepository(plan, warnings));
  const sandbox = createSandbox(driver, opts);
  for (const warning of warnings) plan.warn(warning);
  return sandbox;
}

/**
 * How the files of a repository get in: the service clones what it can reach, and everything else is brought from here. What
 * the user should know of that is added to `warnings`.
 */
async function planRepository(plan: Plan, warnings: string[]): Promise<Filling> {
  const { repo, branch, githubToken, signal } = plan.opts;
  if (repo === undefined) return {};
  if (/^https:\/\//.test(repo)) {
    const prepare = async (machine: Machine): Promise<void> => {
      plan.origin = await prepareRepository(machine, repo, branch);
    };
    return { source: gitSource(repo, githubToken), prepare };
  }
  const mirror = await planMirror(plan.id, { ...plan.opts, repo });
  plan.origin = { base: mirror.base };
  const fill = async (driver: VercelDriver): Promise<void> => {
    warnings.push(...(await fillMirror(mirror, driver, signal)));
  };
  return { resources: mirror.resources, fill };
}

function planOf(id: string, client: VercelClient, settings: VercelSettings, opts: SandboxOptions, keep: boolean): Plan {
  return { id, client, settings, opts, keep, origin: undefined, signal: opts.signal, warn: () => undefined };
}

function newId(): string {
  return `vercel-${randomBytes(8).toString("hex")}`;
}

/** Where the files of a new sandbox come from. */
interface Filling {
  readonly source?: MachineSource;
  /** What the record has to name for them. */
  readonly resources?: readonly Resource[];
  readonly prepare?: (machine: Machine) => Promise<void>;
  readonly fill?: (driver: VercelDriver) => Promise<void>;
}

/** Makes a sandbox with its record and its machine; all of it or nothing. */
async function makeDriver(plan: Plan, { source, resources = [], prepare, fill }: Filling): Promise<VercelDriver> {
  const { id } = plan;
  await createRecord({ id, backend: "vercel", workDir: "", resources });
  let machine: Machine | undefined;
  try {
    await failpoint("create.recorded");
    machine = await nextMachine(plan, source);
    await prepare?.(machine);
    const driver = driverOf(plan, machine);
    await fill?.(driver);
    await updateRecord(id, { workDir: machine.workDir });
    plan.signal?.throwIfAborted();
    if (plan.keep) await noteKept(plan, machine);
    else markReady(id);
    await failpoint("create.ready");
    plan.signal = undefined;
    return driver;
  } catch (error) {
    await machine?.close();
    // What cannot be taken away now stays in the ledger for `reap`.
    await dismantle(id, () => true, removerWith(plan.client)).catch(() => undefined);
    throw error;
  }
}

function driverOf(plan: Plan, machine: Machine): VercelDriver {
  const { origin } = plan;
  const driver = new VercelDriver(
    {
      id: plan.id,
      ...(origin && { repository: (own) => repositoryOperations(origin, own, plan.opts) }),
      snapshot: (current) => saveFiles(plan, current),
      restore: (current, id) => restoreFiles(plan, current, id),
      fork: (current, count) => forkFiles(plan, current, count),
      release: (current) => release(plan, current),
    },
    machine,
  );
  plan.warn = (message) => driver.onWarning?.(message);
  return driver;
}

/** Makes a machine for a sandbox. It is in the record before the service hears of it. */
async function nextMachine(plan: Plan, source?: MachineSource): Promise<Machine> {
  const { id, client, settings, keep, signal } = plan;
  const { teamId, projectId } = client.access;
  const name = `${id}-${randomBytes(4).toString("hex")}`;
  const resource: MachineResource = { kind: "vercel-machine", name, teamId, projectId };
  await addResource(id, { ...resource });
  const made = { name, owner: id, persistent: keep, signal, ...(source !== undefined && { source }) };
  const sandbox = await createMachine(client, settings, made);
  await failpoint("create.started");
  return await Machine.start(sandbox, settings.timeout, (message) => plan.warn(message), signal);
}

/** Writes down what a later process needs to open a kept sandbox again. */
async function noteKept({ id, client, settings, origin }: Plan, { sandbox: { name } }: Machine): Promise<void> {
  const { teamId, projectId } = client.access;
  const reopenable: Reopen = { name, teamId, projectId, settings, ...(origin && { origin }) };
  await updateRecord(id, { state: "kept", reopen: reopenable });
}

/** Takes a machine away that another one has replaced. */
async function retire(plan: Plan, machine: Machine, next: Machine): Promise<void> {
  const { id, client } = plan;
  if (plan.keep) await noteKept(plan, next);
  await machine.close();
  const { name } = machine.sandbox;
  await removeMachine(client, name);
  const resources = (await readRecord(id))?.resources ?? [];
  await updateRecord(id, { resources: resources.filter((each) => (each as { name?: unknown }).name !== name) });
}

/** Stops a machine for a snapshot of it. The processes on it end; calls under way learn why. */
async function stopForSnapshot({ settings }: Plan, machine: Machine): Promise<string> {
  const { snapshotExpiration: expiration } = settings;
  try {
    const { snapshotId } = await machine.session.snapshot(expiration === undefined ? {} : { expiration });
    await machine.close(new SandboxError("backend_lost", "The machine was stopped for a snapshot of its files"));
    return snapshotId;
  } catch (error) {
    throw toVercelError(error, "snapshot");
  }
}

async function saveFiles(plan: Plan, machine: Machine): Promise<{ id: string; next: Machine }> {
  const { teamId, projectId } = plan.client.access;
  const snapshotId = await stopForSnapshot(plan, machine);
  const id = newId();
  await writeSnapshotRecord({
    version: 1,
    id,
    sandboxId: plan.id,
    backend: "vercel",
    createdAt: new Date().toISOString(),
    details: { snapshotId, teamId, projectId, source: sourceOf(plan.origin) },
  });
  try {
    const next = await nextMachine(plan, { type: "snapshot", snapshotId });
    await retire(plan, machine, next);
    return { id, next };
  } catch (error) {
    throw new SandboxError("backend_lost", `The files are saved as ${id}, but no machine goes on with them`, {
      cause: error,
      hint: `restore("${id}") in another sandbox`,
    });
  }
}

async function restoreFiles(plan: Plan, machine: Machine, id: string): Promise<Machine> {
  const record = await readSnapshotRecord(id);
  const { snapshotId, teamId, projectId, source } = detailsOf(record);
  const { access } = plan.client;
  if (plan.origin !== undefined && source !== undefined && source !== sourceOf(plan.origin)) {
    throw new SandboxError("conflict", `The snapshot ${id} is of another repository`, { retryable: false });
  }
  if (teamId !== access.teamId || projectId !== access.projectId) {
    throw new SandboxError("conflict", `The snapshot ${id} is of another project`, { retryable: false });
  }
  const next = await nextMachine(plan, { type: "snapshot", snapshotId });
  await retire(plan, machine, next);
  return next;
}

async function forkFiles(
  plan: Plan,
  machine: Machine,
  count: number,
): Promise<{ next: Machine; forks: VercelDriver[]; failure?: unknown }> {
  const { client, settings, opts } = plan;
  const snapshotId = await stopForSnapshot(plan, machine);
  const source = { type: "snapshot", snapshotId } as const;
  const made = await Promise.allSettled([
    nextMachine(plan, source),
    ...Array.from({ length: count }, (_, index) => {
      const fork = { ...planOf(newId(), client, settings, opts, false), signal: undefined };
      return makeDriver(fork, { source, ...forkRepository(plan, fork, index + 1) });
    }),
  ] as const);
  const [next, ...forks] = made as [PromiseSettledResult<Machine>, ...PromiseSettledResult<VercelDriver>[]];
  if (next.status === "rejected") {
    throw new SandboxError("backend_lost", "No machine goes on with the files", { cause: next.reason });
  }
  await retire(plan, machine, next.value);
  await removeServiceSnapshot(client, snapshotId);
  const failed = forks.find((each) => each.status === "rejected");
  const drivers = forks.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  if (failed === undefined) return { next: next.value, forks: drivers };
  for (const driver of drivers) await driver.destroy();
  return { next: next.value, forks: [], failure: failed.reason };
}

/** A fork has a branch of its own. */
function forkRepository({ origin }: Plan, fork: Plan, n: number): Filling {
  if (origin === undefined) return {};
  const own = forkOrigin(origin, n);
  fork.origin = own;
  const fill = (driver: VercelDriver): Promise<void> => setInsideBranch({ driver, warn: fork.warn }, branchOf(own));
  return { resources: "base" in own ? mirrorResources(own.base) : [], fill };
}

async function release(plan: Plan, machine: Machine): Promise<void> {
  const { id, client, keep } = plan;
  if (!keep) {
    if (!(await dismantle(id, () => true, removerWith(client)))) await removeMachine(client, machine.sandbox.name);
    return;
  }
  await stopMachine(machine.sandbox);
  await updateRecord(id, { state: "kept", owner: undefined });
}

async function reopen(id: string, client: VercelClient, opts: SandboxOptions): Promise<Sandbox> {
  const record = await claimRecord(id);
  try {
    const { name, teamId, projectId, settings, origin } = record.reopen as Reopen;
    const { access } = client;
    if (teamId !== access.teamId || projectId !== access.projectId) {
      throw new SandboxError("conflict", `Sandbox "${id}" is of another project`, { retryable: false });
    }
    const plan = { ...planOf(id, client, settings, opts, opts.keep ?? true), origin };
    await sweepScratch(id);
    const machine = await Machine.start(await resumeMachine(client, name), settings.timeout, (text) => plan.warn(text));
    return createSandbox(driverOf(plan, machine), opts);
  } catch (error) {
    await updateRecord(id, { owner: undefined });
    throw error;
  }
}

function removerWith(client: VercelClient): RemoverOf {
  return async () => async (resource) => {
    if (await removeGitResource(resource)) return;
    await removeMachine(client, (resource as unknown as MachineResource).name);
  };
}

/** What the record of a snapshot says about where it is, and of what; older ones do not say the last. */
interface Details {
  readonly snapshotId: string;
  readonly teamId: string;
  readonly projectId: string;
  readonly source?: string;
}

function detailsOf(record: SnapshotRecord): Details {
  if (record.backend !== "vercel") {
    throw new SandboxError("conflict", `The snapshot ${record.id} is of the backend ${record.backend}`, {
      retryable: false,
    });
  }
  return record.details as unknown as Details;
}

let reaped: Promise<unknown> | undefined;

/** Removes what dead processes left, the first time this process opens a sandbox. */
async function reapOnce(): Promise<void> {
  reaped ??= reapRecords(async () => removeResource, { backend: "vercel" }).catch(() => undefined);
  await reaped;
}
