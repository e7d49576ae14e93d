import { SandboxError, toSandboxError } from "../../../contracts/errors.js";
import type { Capabilities } from "../../../contracts/types.js";
import {
  claimRecord,
  createRecord,
  dismantle,
  markReady,
  type RemoverOf,
  type Resource,
  type SnapshotRecord,
  updateRecord,
} from "../../ledger.js";
import { failpoint } from "../../machine/failpoint.js";
import { fillMirror, mirrorResources, planMirror, removeGitResource, setSandboxBranch, sweepScratch } from "../git.js";
import { reopenOptions } from "../kept-options.js";
import { validateSandboxOptions } from "../options.js";
import { createSandbox } from "../portable.js";
import { reapRecords } from "../reap-records.js";
import { DEFAULT_OPERATION_TIMEOUT, type Sandbox, type SandboxOptions } from "../types.js";
import { conformance, vercelCapabilities } from "./vercel/capabilities.js";
import { connect, connectTo, type VercelClient } from "./vercel/client.js";
import { VercelDriver } from "./vercel/driver.js";
import { gitSource, prepareRepository } from "./vercel/git-source.js";
import { Machine } from "./vercel/machine.js";
import { type MachineSource, resumeMachine } from "./vercel/machines.js";
import { newId, type Plan, planOf, type Reopen } from "./vercel/plan.js";
import { probe } from "./vercel/probe.js";
import { askedSnapshots, findStopped, removeMachine, removeServiceSnapshot, stopMachine } from "./vercel/removal.js";
import { branchOf, forkOrigin, repositoryOperations } from "./vercel/repository.js";
import { toSettings, type VercelSettings } from "./vercel/settings.js";
import {
  detailsOf,
  type MachineResource,
  nextMachine,
  noteKept,
  removeReplaced,
  restoreFiles,
  retire,
  saveFiles,
  stopForSnapshot,
} from "./vercel/succession.js";

export { conformance, probe };

/** How long a new sandbox may wait where the service asks for it: nothing is lost when it is opened later. */
const OPENING_PATIENCE = 20_000;

/** What a sandbox with a repository keeps. */
export function capabilities(): Capabilities {
  return vercelCapabilities(true);
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
  await removeWithin(DEFAULT_OPERATION_TIMEOUT, resource);
}

async function removeWithin(patience: number, resource: Resource): Promise<void> {
  if (await removeGitResource(resource)) return;
  if (resource.kind !== "vercel-machine") return;
  const { name, teamId, projectId } = resource as unknown as MachineResource;
  await removeMachine(await connectTo(teamId, projectId), name, patience);
}

/** Deletes a snapshot of the service. */
export async function removeSnapshot(record: SnapshotRecord): Promise<void> {
  const { snapshotId, teamId, projectId } = detailsOf(record);
  await removeServiceSnapshot(await connectTo(teamId, projectId), snapshotId, DEFAULT_OPERATION_TIMEOUT);
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
    assertNoGitOptions(plan.opts);
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

/** What the service clones by itself, no git of this machine looks at. */
function assertNoGitOptions(opts: SandboxOptions): void {
  for (const name of ["gitFilters", "gitAlternates"] as const) {
    if (opts[name] === undefined) continue;
    throw new SandboxError("unsupported", `The vercel backend cannot keep ${name}: the service clones by itself`, {
      hint: "give the path of a clone of yours as repo",
    });
  }
}

/** Where the files of a new sandbox come from. */
interface Filling {
  readonly source?: MachineSource;
  /** What the record has to name for them. */
  readonly resources?: readonly Resource[];
  readonly prepare?: (machine: Machine) => Promise<void>;
  readonly fill?: (driver: VercelDriver) => Promise<void>;
}

/**
 * Makes a sandbox with its record and its machine; all of it or nothing. A service that is busy is waited for as long as
 * `patience` says, in milliseconds.
 */
async function makeDriver(
  plan: Plan,
  { source, resources = [], prepare, fill }: Filling,
  patience = OPENING_PATIENCE,
): Promise<VercelDriver> {
  const { id } = plan;
  await createRecord({ id, backend: "vercel", workDir: "", resources });
  let machine: Machine | undefined;
  try {
    await failpoint("create.recorded");
    machine = await nextMachine(plan, patience, source);
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
    await dismantle(id, () => true, removerWith(plan, patience)).catch(() => undefined);
    throw error;
  }
}

function driverOf(plan: Plan, machine: Machine): VercelDriver {
  const { origin } = plan;
  const driver = new VercelDriver(
    {
      id: plan.id,
      patience: plan.patience,
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

async function forkFiles(
  plan: Plan,
  machine: Machine,
  count: number,
): Promise<{ next: Machine; forks: VercelDriver[]; failure?: unknown }> {
  const { client, settings, opts, patience } = plan;
  const snapshotId = await stopForSnapshot(plan, machine);
  const source = { type: "snapshot", snapshotId } as const;
  const made = await Promise.allSettled([
    nextMachine(plan, patience, source),
    ...Array.from({ length: count }, (_, index) => {
      const fork = { ...planOf(newId(), client, settings, opts, false), signal: undefined };
      return makeDriver(fork, { source, ...forkRepository(plan, fork, index + 1) }, patience);
    }),
  ] as const);
  const [next, ...forks] = made as [PromiseSettledResult<Machine>, ...PromiseSettledResult<VercelDriver>[]];
  const drivers = forks.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  const failed = made.find((each) => each.status === "rejected");
  if (failed !== undefined) for (const driver of drivers) await driver.destroy().catch(() => undefined);
  if (next.status === "rejected") {
    throw new SandboxError("backend_lost", "No machine goes on with the files", { cause: next.reason });
  }
  await retire(plan, machine.sandbox.name, next.value);
  await removeServiceSnapshot(client, snapshotId, patience).catch((error: Error) =>
    plan.warn(`the snapshot of a fork could not be deleted: ${error.message}`),
  );
  if (failed !== undefined) return { next: next.value, forks: [], failure: failed.reason };
  return { next: next.value, forks: drivers };
}

/** A fork has a branch of its own. */
function forkRepository({ origin }: Plan, fork: Plan, n: number): Filling {
  if (origin === undefined) return {};
  const own = forkOrigin(origin, n);
  fork.origin = own;
  const fill = (driver: VercelDriver): Promise<void> => setSandboxBranch({ driver, warn: fork.warn }, branchOf(own));
  return { resources: "base" in own ? mirrorResources(own.base) : [], fill };
}

async function release(plan: Plan, machine: Machine): Promise<void> {
  const { id, client, keep, patience } = plan;
  if (!keep) {
    if (await dismantle(id, () => true, removerWith(plan, patience))) return;
    await removeMachine(client, machine.sandbox.name, patience);
    return;
  }
  await stopMachine(client, machine.sandbox, patience);
  await updateRecord(id, { state: "kept", owner: undefined });
}

async function reopen(id: string, client: VercelClient, given: SandboxOptions): Promise<Sandbox> {
  const record = await claimRecord(id);
  try {
    const { name, teamId, projectId, settings, origin, options } = record.reopen as Reopen;
    const opts = reopenOptions(given, options, { network: settings.network, isolation: "required" });
    const { access } = client;
    if (teamId !== access.teamId || projectId !== access.projectId) {
      throw new SandboxError("conflict", `Sandbox "${id}" is of another project`, { retryable: false });
    }
    const plan = { ...planOf(id, client, settings, opts, opts.keep ?? true), origin };
    await sweepScratch(id);
    const machine = await continueMachine(plan, name);
    await removeReplaced(plan, machine);
    return createSandbox(driverOf(plan, machine), opts);
  } catch (error) {
    await updateRecord(id, { owner: undefined });
    throw error;
  }
}

/**
 * Goes on where a kept sandbox was left. A machine that stopped for a snapshot that somebody asked for is not started again, but
 * followed by another one: the service keeps the last snapshot of a machine only, and would delete that one at the next stop.
 */
async function continueMachine(plan: Plan, name: string): Promise<Machine> {
  const { client, settings, patience } = plan;
  const { currentSnapshotId: snapshotId, status } = await findStopped(client, name, patience);
  if (snapshotId !== undefined && status !== "running" && (await askedSnapshots()).has(snapshotId)) {
    // It is a kept one until it is torn down, whatever happens before.
    const next = await nextMachine(plan, patience, { type: "snapshot", snapshotId }, true);
    await noteKept(plan, next);
    await retire(plan, name, next);
    return next;
  }
  const sandbox = await resumeMachine(client, name, settings, patience);
  return await Machine.start(sandbox, { timeout: settings.timeout, patience, warn: (text) => plan.warn(text) });
}

function removerWith({ client }: Plan, patience: number): RemoverOf {
  return async () => async (resource) => {
    if (await removeGitResource(resource)) return;
    await removeMachine(client, (resource as unknown as MachineResource).name, patience);
  };
}

let reaped: Promise<unknown> | undefined;

/** Removes what dead processes left, the first time this process opens a sandbox. Nobody waits for a busy service here. */
async function reapOnce(): Promise<void> {
  reaped ??= reapRecords(async () => (resource) => removeWithin(0, resource), { backend: "vercel" }).catch(
    () => undefined,
  );
  await reaped;
}
