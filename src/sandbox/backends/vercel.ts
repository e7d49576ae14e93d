import type { Backend, Resource, SandboxEntry, SnapshotRecord } from "../../../contracts/backend.js";
import { SandboxError } from "../../../contracts/errors.js";
import { fillMirror, mirrorResources, planMirror, removeGitResource, setSandboxBranch } from "../git.js";
import { closeDriver, openWith, otherPlace } from "../lifecycle.js";
import { DEFAULT_OPERATION_TIMEOUT, type Sandbox, type SandboxOptions } from "../types.js";
import { conformance, vercelCapabilities } from "./vercel/capabilities.js";
import { connect, connectTo } from "./vercel/client.js";
import { VercelDriver } from "./vercel/driver.js";
import { gitSource, prepareRepository } from "./vercel/git-source.js";
import { Machine } from "./vercel/machine.js";
import { type MachineSource, resumeMachine } from "./vercel/machines.js";
import { planOf, type Reopen, type VercelPlan } from "./vercel/plan.js";
import { probe } from "./vercel/probe.js";
import { askedSnapshots, findStopped, removeMachine, removeServiceSnapshot, stopMachine } from "./vercel/removal.js";
import {
  assertProject,
  detailsOf,
  type MachineResource,
  nextMachine,
  removeOld,
  removeReplaced,
  restoreFiles,
  saveFiles,
  savePlan,
  stopForSnapshot,
  withoutFiles,
} from "./vercel/replace-machine.js";
import { branchOf, forkOrigin, type Origin, onBranch, repositoryOperations } from "./vercel/repository.js";
import { toSettings, type VercelSettings, vercelOptions } from "./vercel/settings.js";

export type * from "./vercel/vercel-options.js";

/** How long opening a sandbox may wait if the service asks for it, in milliseconds: nothing is lost if it is opened later. */
const OPENING_PATIENCE = 20_000;

/** Sandboxes in machines of the Vercel Sandbox service. */
export const vercel: Backend = {
  name: "vercel",
  capabilities: () => vercelCapabilities(true),
  options: vercelOptions,
  check: (opts) => void toSettings(opts),
  startsFromSnapshots: true,
  credentials: [["VERCEL_OIDC_TOKEN"], ["VERCEL_TOKEN", "VERCEL_TEAM_ID", "VERCEL_PROJECT_ID"]],
  images: ({ image }) => [image],
  writtenOptions: ["teamId", "projectId", "runtime", "timeout", "ports", "region", "snapshotExpiration"],
  secrets: (opts) => [opts.vercel?.token],
  async create(opts, entry) {
    const plan = planOf(await connect(opts.vercel), toSettings(opts), opts, entry);
    if (entry.snapshot !== undefined) return await createFromSnapshot(plan, entry.snapshot);
    return await makeDriver(plan, await planRepository(plan), OPENING_PATIENCE);
  },
  async reopen(saved, opts, entry) {
    const { name, teamId, projectId, settings, origin } = saved as Reopen;
    const client = await connect(opts.vercel);
    const { access } = client;
    if (teamId !== access.teamId || projectId !== access.projectId) {
      throw new SandboxError("conflict", `Sandbox "${entry.id}" belongs to another project`, { retryable: false });
    }
    const plan = { ...planOf(client, settings, opts, entry), origin };
    const machine = await continueMachine(plan, name);
    await removeReplaced(plan, machine);
    return driverOf(plan, machine);
  },
  async removeResource(resource, { patience }) {
    if ((await removeGitResource(resource)) || resource.kind !== "vercel-machine") return;
    const { name, teamId, projectId } = resource as unknown as MachineResource;
    await removeMachine(await connectTo(teamId, projectId), name, patience);
  },
  removeSnapshot,
  probe,
  conformance,
};

/** Opens a sandbox in a machine of the Vercel Sandbox service. */
export function createVercelSandbox(opts: SandboxOptions = {}): Promise<Sandbox> {
  return openWith(vercel, opts);
}

async function removeSnapshot(record: SnapshotRecord): Promise<void> {
  const { snapshotId, teamId, projectId } = detailsOf(record);
  await removeServiceSnapshot(await connectTo(teamId, projectId), snapshotId, DEFAULT_OPERATION_TIMEOUT);
}

/** Decides how the files of a repository get in: the service clones what it can reach; everything else is uploaded. */
async function planRepository(plan: VercelPlan): Promise<Filling> {
  const { repo, branch, githubToken } = plan.opts;
  if (repo === undefined) return {};
  if (/^https:\/\//.test(repo)) {
    assertNoGitOptions(plan.opts);
    const prepare = async (machine: Machine): Promise<void> => {
      plan.origin = await prepareRepository(machine, repo, branch);
    };
    return { source: gitSource(repo, githubToken), prepare };
  }
  const mirror = await planMirror(plan.entry.id, { ...plan.opts, repo });
  plan.origin = { base: mirror.base };
  const fill = async (driver: VercelDriver): Promise<void> => {
    for (const note of await fillMirror(mirror, driver, plan.entry.signal)) plan.entry.warn(note);
  };
  return { resources: mirror.resources, fill };
}

/** No git on this machine looks at a repository that the service clones. */
function assertNoGitOptions(opts: SandboxOptions): void {
  for (const name of ["gitFilters", "gitAlternates"] as const) {
    if (opts[name] === undefined) continue;
    throw new SandboxError(
      "unsupported",
      `The vercel backend can't enforce ${name}: the service itself clones the repository`,
      {
        hint: "set repo to the path of a local clone",
      },
    );
  }
}

/** Where the files of a new sandbox come from. */
interface Filling {
  readonly source?: MachineSource;
  /** What the record must name for them. */
  readonly resources?: readonly Resource[];
  readonly prepare?: (machine: Machine) => Promise<void>;
  readonly fill?: (driver: VercelDriver) => Promise<void>;
}

/** Makes the machine of a sandbox: all of it or nothing. Waits for a busy service for up to `patience` milliseconds. */
async function makeDriver(
  plan: VercelPlan,
  { source, resources = [], prepare, fill }: Filling,
  patience: number,
): Promise<VercelDriver> {
  await plan.entry.createRecord({ resources });
  let machine: Machine | undefined;
  try {
    machine = await nextMachine(plan, patience, source);
    await prepare?.(machine);
    const driver = driverOf(plan, machine);
    await fill?.(driver);
    await savePlan(plan, machine);
    return driver;
  } catch (error) {
    await machine?.close();
    throw error;
  }
}

function driverOf(plan: VercelPlan, machine: Machine): VercelDriver {
  const { origin } = plan;
  return new VercelDriver(
    {
      id: plan.entry.id,
      patience: plan.patience,
      ...(origin && { repository: (own) => repositoryOperations(origin, own, plan.opts) }),
      snapshot: (current) => saveFiles(plan, current),
      removeSnapshot,
      restore: (current, id) => restoreFiles(plan, current, id),
      fork: (current, count) => forkFiles(plan, current, count),
      async close(current) {
        if (plan.entry.keep) await stopMachine(plan.client, current.sandbox, plan.patience);
      },
    },
    machine,
  );
}

async function forkFiles(
  plan: VercelPlan,
  machine: Machine,
  count: number,
): Promise<{ next: Machine; forks: VercelDriver[]; failure?: unknown }> {
  const { client, settings, opts, patience, entry } = plan;
  const snapshotId = await stopForSnapshot(plan, machine);
  const source = { type: "snapshot", snapshotId } as const;
  const create = (own: SandboxEntry, n: number): Promise<VercelDriver> => {
    const fork = planOf(client, settings, opts, own);
    return makeDriver(fork, { source, ...forkRepository(plan, fork, n) }, patience);
  };
  const [next, forks] = await Promise.allSettled([
    nextMachine(plan, patience, source),
    entry.fork(count, create, { atOnce: true }),
  ]);
  if (next.status === "rejected") {
    if (forks.status === "fulfilled") for (const fork of forks.value) await closeDriver(fork).catch(() => undefined);
    throw new SandboxError("backend_lost", "No new machine could be started with the files", { cause: next.reason });
  }
  await removeOld(plan, machine.sandbox.name, next.value);
  await removeServiceSnapshot(client, snapshotId, patience).catch((error: Error) =>
    entry.warn(`the snapshot of a fork could not be deleted: ${error.message}`),
  );
  if (forks.status === "rejected") return { next: next.value, forks: [], failure: forks.reason };
  return { next: next.value, forks: forks.value };
}

/** Makes a machine from a snapshot of the service. What its changes are compared with is what the snapshot's are. */
async function createFromSnapshot(asked: VercelPlan, record: SnapshotRecord): Promise<VercelDriver> {
  const { id } = record;
  const { snapshotId, source, origin, workDir, ...project } = detailsOf(record);
  assertProject(asked, { id, ...project });
  const plan = { ...asked, settings: settingsAt(asked.settings, id, workDir) };
  if (origin === undefined && source !== undefined && source !== "") {
    throw new SandboxError("unsupported", `The record of snapshot ${id} doesn't say what its repository started from`, {
      hint: `an older version took it: open a sandbox with repo: "${source}" and call restore("${id}")`,
    });
  }
  const { branch = `glovebox/${plan.entry.id}` } = plan.opts;
  const repository = origin === undefined ? {} : copiedRepository(plan, onBranch(origin, branch));
  const filling = { source: { type: "snapshot", snapshotId }, ...repository } as const;
  return await makeDriver(plan, filling, OPENING_PATIENCE).catch((error: unknown) => {
    throw withoutFiles(error, id);
  });
}

/** The settings of a machine whose files are already somewhere. Older records do not say where. */
function settingsAt(settings: VercelSettings, id: string, workDir: string | undefined): VercelSettings {
  const { workDir: asked } = settings;
  if (workDir === undefined && asked === undefined) return settings;
  if (workDir === undefined) {
    throw new SandboxError("unsupported", `The record of snapshot ${id} doesn't say where its files are`, {
      hint: "an older version took it: omit workDir",
    });
  }
  if (asked !== undefined && asked !== workDir) throw otherPlace(id, workDir);
  return { ...settings, workDir };
}

/** A fork has a branch of its own. */
function forkRepository({ origin }: VercelPlan, fork: VercelPlan, n: number): Filling {
  return origin === undefined ? {} : copiedRepository(fork, forkOrigin(origin, n));
}

/** What is left to do for a machine that has the files already. */
function copiedRepository(fork: VercelPlan, own: Origin): Filling {
  fork.origin = own;
  const warn = (message: string): void => fork.entry.warn(message);
  const fill = (driver: VercelDriver): Promise<void> => setSandboxBranch({ driver, warn }, branchOf(own));
  return { resources: "base" in own ? mirrorResources(own.base) : [], fill };
}

/**
 * Continues a kept sandbox. A machine that stopped for a requested snapshot is not started again but replaced: the service only keeps the last
 * snapshot of a machine, and would delete that one at the next stop.
 */
async function continueMachine(plan: VercelPlan, name: string): Promise<Machine> {
  const { client, settings, patience } = plan;
  const { currentSnapshotId: snapshotId, status } = await findStopped(client, name, patience);
  if (snapshotId !== undefined && status !== "running" && (await askedSnapshots()).has(snapshotId)) {
    // It stays a kept one until it is torn down, whatever happens before.
    const next = await nextMachine(plan, patience, { type: "snapshot", snapshotId }, true);
    await savePlan(plan, next);
    await removeOld(plan, name, next);
    return next;
  }
  const sandbox = await resumeMachine(client, name, settings, patience);
  const { timeout, workDir } = settings;
  const { expiresAt } = plan.entry;
  const warn = (text: string): void => plan.entry.warn(text);
  return await Machine.start(sandbox, { timeout, workDir, patience, warn, expiresAt });
}
