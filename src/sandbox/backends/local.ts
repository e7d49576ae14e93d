import { SandboxError } from "../../../contracts/errors.js";
import type { Finding } from "../../../contracts/finding.js";
import type { Capabilities, Limits, Mount, NetworkPolicy } from "../../../contracts/types.js";
import {
  addResource,
  claimRecord,
  createRecord,
  dismantle,
  markReady,
  type RemoverOf,
  readRecord,
  updateRecord,
} from "../../ledger.js";
import { failpoint } from "../../machine/failpoint.js";
import { runtimeDir } from "../../machine/home.js";
import { assertCapabilities } from "../capabilities.js";
import { openEgress } from "../egress.js";
import {
  createOperations,
  fillForks,
  type LiveTree,
  nameForkedBranch,
  parseSourceUrl,
  recheckRepository,
  removeSnapshot,
  shownUrl,
  sweepScratch,
} from "../git.js";
import { findBwrap, type RunningGuest, startJailedGuest, startPlainGuest } from "../jail.js";
import { type KeptOptions, keptOptions, reopenOptions } from "../kept-options.js";
import { openInTime } from "../open-in-time.js";
import { validateSandboxOptions } from "../options.js";
import { createSandbox } from "../portable.js";
import { reapRecords } from "../reap-records.js";
import type { Sandbox, SandboxOptions } from "../types.js";
import { checkBaseDir, checkMounts, protectGit } from "./local/base-dir.js";
import { trimCache } from "./local/cache.js";
import { beginRemoval, removeResource } from "./local/cleanup.js";
import { conformance } from "./local/conformance.js";
import { checkLimits, controlGroupPaths, enforceableLimits, makeControlGroups } from "./local/control-group.js";
import { LocalDriver } from "./local/driver.js";
import { noteEtc, sweepEtc } from "./local/etc-cache.js";
import { localTree } from "./local/local-tree.js";
import { plainEnv } from "./local/plain-env.js";
import { probeLocal } from "./local/probe.js";
import { removeCgroup } from "./local/remove-cgroup.js";
import { renamesIn } from "./local/renames.js";
import { buildWalls } from "./local/walls.js";
import {
  type MadeWorkspace,
  newSandboxId,
  type PlannedWorkspace,
  planFork,
  planWorkspace,
  resourcesOf,
  type Workspace,
} from "./local/workspace.js";

export { conformance, removeResource, removeSnapshot, trimCache };

const ownRemover: RemoverOf = async () => beginRemoval;

/** What a kept sandbox remembers of how it was made. Never a secret, so never `env`. */
interface Reopen {
  workspace: Workspace;
  isolation: "required" | "none";
  network: NetworkPolicy;
  limits: Limits;
  options?: KeptOptions;
}

/** What the local backend keeps on this machine with this kind of isolation, and with or without a repository. */
export function localCapabilities(
  isolation: "required" | "none" = "required",
  git = true,
  renames: NonNullable<Capabilities["renames"]> = "all",
): Capabilities {
  const confined = isolation === "required";
  return {
    isolation: confined ? "namespaces" : "none",
    killTree: confined ? "complete" : "best-effort",
    network: confined ? ["none", "full", "allow"] : ["full"],
    limits: enforceableLimits(),
    snapshot: confined ? "consistent" : "crash-consistent",
    fork: "copy",
    pty: true,
    user: false,
    ports: false,
    git,
    renames,
  };
}

/** What a confined sandbox on this machine keeps. */
export function capabilities(): Capabilities {
  return localCapabilities();
}

/** Opens a sandbox on this machine: a git worktree, a directory of the user's, or an empty one. */
export async function createLocalSandbox(opts: SandboxOptions = {}): Promise<Sandbox> {
  validateSandboxOptions(opts);
  return await openInTime("local", opts, async (inTime) => {
    await reapOnce();
    return inTime.id === undefined ? await createNew(inTime) : await reopen(inTime.id, inTime);
  });
}

/** What the registry calls. */
export function open(opts: SandboxOptions): Promise<Sandbox> {
  return createLocalSandbox(opts);
}

/** Looks at what the local backend needs on this machine. */
export function probe(): Promise<Finding[]> {
  return probeLocal(createLocalSandbox, enforceableLimits());
}

async function createNew(opts: SandboxOptions): Promise<Sandbox> {
  const { isolation = "required" } = opts;
  const network = opts.network ?? (isolation === "required" ? "none" : "full");
  checkPossible({ ...opts, network }, isolation);
  const id = newSandboxId();
  const planned = await planWorkspace(id, opts);
  const mounts = checkMounts(opts.mounts ?? [], planned.workDir);
  if (mounts.length > 0 && isolation === "none") {
    throw new SandboxError("unsupported", "Without isolation nothing is mounted: the host's paths are all there");
  }
  const rules = {
    isolation,
    network,
    limits: opts.limits ?? {},
    options: keptOptions({ ...opts, mounts: asMounts(mounts) }),
  };
  return createSandbox(await makeDriver(id, planned, rules, mounts, opts), opts);
}

/** Mounts as they are remembered: nothing in them depends on the directory that the process is in. */
function asMounts(binds: ReturnType<typeof checkMounts>): readonly Mount[] {
  return binds.map(({ source, target, writable = false }) => ({ source, target, writable }));
}

/** A sandbox that runs, and that the ledger does not call ready yet. */
interface Begun {
  driver: LocalDriver;
  plan: Reopen;
  /** As what looks at its files while it is being made sees it. */
  tree: LiveTree;
}

/** Makes a workspace and starts a sandbox on it; all of it or nothing. */
async function makeDriver(
  id: string,
  planned: PlannedWorkspace,
  rules: Omit<Reopen, "workspace">,
  mounts: ReturnType<typeof checkMounts>,
  opts: SandboxOptions,
): Promise<LocalDriver> {
  const begun = await begin(id, planned, rules, mounts, opts);
  try {
    await finish(begun, opts);
    return begun.driver;
  } catch (error) {
    await undo(begun);
    throw error;
  }
}

async function begin(
  id: string,
  planned: PlannedWorkspace,
  rules: Omit<Reopen, "workspace">,
  mounts: ReturnType<typeof checkMounts>,
  opts: SandboxOptions,
): Promise<Begun> {
  const { workDir, resources } = planned;
  await createRecord({ id, backend: "local", workDir, resources });
  let made: MadeWorkspace | undefined;
  let driver: LocalDriver | undefined;
  try {
    await failpoint("create.recorded");
    made = await planned.make(id, opts.signal);
    const plan: Reopen = { workspace: made.workspace, ...rules };
    driver = await startDriver(id, plan, mounts, opts);
    await made.filled;
    await failpoint("create.populated");
    return { driver, plan, tree: liveTree(id, plan, driver, opts.signal ?? new AbortController().signal, opts) };
  } catch (error) {
    await driver?.stop();
    await made?.filled?.catch(() => undefined);
    // What cannot be taken away now stays in the ledger for `reap`.
    await remove(id).catch(() => undefined);
    throw error;
  }
}

async function finish({ driver: { id }, plan }: Begun, opts: SandboxOptions): Promise<void> {
  // One that is ready too late must not be kept: nobody would be given its id.
  opts.signal?.throwIfAborted();
  if (opts.keep === true) await updateRecord(id, { state: "kept", reopen: plan });
  else markReady(id);
  await failpoint("create.ready");
}

async function undo({ driver }: Begun): Promise<void> {
  await driver.stop();
  await remove(driver.id).catch(() => undefined);
}

/** Makes copies of a sandbox as it is now; all of them or none. */
async function forkDrivers(
  tree: LiveTree,
  driver: LocalDriver,
  count: number,
  plan: Reopen,
  mounts: ReturnType<typeof checkMounts>,
  { signal: _, ...opts }: SandboxOptions,
): Promise<LocalDriver[]> {
  const { workspace, ...rules } = plan;
  const made: Begun[] = [];
  const makeAll = async (): Promise<LiveTree[]> => {
    while (made.length < count) {
      tree.signal.throwIfAborted();
      const id = newSandboxId();
      const planned = await planFork(id, made.length + 1, workspace, rules.isolation === "required");
      made.push(await begin(id, planned, rules, mounts, opts));
      await failpoint("fork.made");
    }
    return made.map((fork) => fork.tree);
  };
  try {
    // A layer is copied as it is, when its fork is made.
    if (workspace.kind === "overlay") await driver.frozen(makeAll);
    else await fillForks(tree, await makeAll(), { areForeign: workspace.kind === "base-dir" });
    for (const fork of made) {
      if (workspace.kind === "overlay") await nameForkedBranch(fork.tree);
      await finish(fork, opts);
    }
    return made.map((fork) => fork.driver);
  } catch (error) {
    for (const fork of made) await undo(fork);
    throw error;
  }
}

function liveTree(
  id: string,
  plan: Reopen,
  driver: LocalDriver,
  signal: AbortSignal,
  { operationTimeout }: SandboxOptions,
): LiveTree {
  const tree = localTree(id, plan.workspace, plan.isolation === "required", driver, signal);
  return { ...tree, patience: operationTimeout };
}

async function reopen(id: string, given: SandboxOptions): Promise<Sandbox> {
  const record = await claimRecord(id);
  const plan = record.reopen as Reopen;
  try {
    const opts = reopenOptions(given, plan.options, plan);
    await sweepScratch(id);
    checkPossible({ network: plan.network, limits: plan.limits }, plan.isolation);
    const { kind, workDir, base } = plan.workspace;
    if (base !== undefined) recheckRepository(base.repository);
    // The user may have made a git directory there since.
    if (kind === "base-dir") plan.workspace.trees = protectGit(checkBaseDir(workDir));
    // What a mount shows may have been replaced since, so it is checked again.
    const mounts = checkMounts(opts.mounts ?? [], workDir);
    const driver = await startDriver(id, plan, mounts, { ...opts, keep: opts.keep ?? true });
    return createSandbox(driver, opts);
  } catch (error) {
    await updateRecord(id, { owner: undefined });
    throw error;
  }
}

/** Enforce or refuse: everything that cannot be kept is an error here, before anything is created. */
function checkPossible(opts: SandboxOptions, isolation: "required" | "none"): void {
  if (process.platform !== "linux") {
    throw new SandboxError("no_isolation", `The local backend needs Linux; this is ${process.platform}`, {
      hint: 'use the docker backend: openSandbox({ backend: "docker" })',
    });
  }
  if (isolation === "required") findBwrap();
  assertCapabilities(opts, localCapabilities(isolation), "local");
  checkLimits(opts.limits ?? {});
  if (opts.image !== undefined) throw unsupported("image", opts.image, "it has no images");
  if (isolation === "none" && opts.repo !== undefined && parseSourceUrl(opts.repo) !== undefined) {
    // The inside would commit in a clone that is in the cache, where nobody keeps it.
    throw unsupported("repo", shownUrl(opts.repo), "without isolation it takes the path of a clone, not a URL");
  }
  if (opts.workspace === "overlay" && isolation === "none") {
    throw unsupported("workspace", opts.workspace, "without isolation there is nothing to mount it in");
  }
}

function unsupported(option: string, value: string, reason: string): SandboxError {
  return new SandboxError("unsupported", `The local backend cannot keep ${option} "${value}": ${reason}`);
}

async function startDriver(
  id: string,
  plan: Reopen,
  mounts: ReturnType<typeof checkMounts>,
  opts: SandboxOptions,
): Promise<LocalDriver> {
  const { workspace, isolation, network, limits } = plan;
  const { workDir } = workspace;
  const cgroups = Object.keys(limits).length > 0 ? controlGroupPaths(id, limits) : [];
  for (const path of cgroups) await addResource(id, { kind: "cgroup", path });
  makeControlGroups(cgroups, limits);
  await failpoint("create.grouped");
  const runtime = runtimeDir(id);
  const confined = isolation === "required";
  const trees = [workspace.root, ...workspace.trees, ...mounts];
  const walls = confined ? buildWalls({ workDir, trees, network: walledNetwork(network), cgroups }) : undefined;
  if (walls) noteEtc(id, walls.etc);
  const guest = walls
    ? await startJailedGuest(walls.spec, opts.signal)
    : await startPlainGuest(workDir, cgroups, opts.signal);
  let driver: LocalDriver | undefined;
  const warn = (message: string): void => driver?.onWarning?.(message);
  const proxied = await openWay(guest, network, warn);
  driver = new LocalDriver({
    id,
    workDir,
    capabilities: localCapabilities(isolation, workspace.base !== undefined, renamesIn(workspace.kind)),
    baseEnv: { ...(walls?.baseEnv ?? plainEnv(runtime)), ...proxied },
    guest,
    cgroups,
    operations: (driver, signal) =>
      createOperations(liveTree(id, plan, driver, signal, opts), {
        fork: (tree, count) => forkDrivers(tree, driver, count, plan, mounts, opts),
        token: opts.githubToken,
      }),
    release: async (ended) => {
      if (opts.keep !== true) return await removeOwn(id, workspace, cgroups, ended);
      await ended;
      // Whoever opens it next mounts its layer again.
      await guest.stop();
      await letGo(id);
    },
  });
  return driver;
}

/** A list of names is kept by an empty network: what is on it is reached through a proxy. */
function walledNetwork(network: NetworkPolicy): "none" | "full" {
  return typeof network === "string" ? network : "none";
}

/** Opens the way out that a list of names needs, and says what makes programs take it. */
async function openWay(
  guest: RunningGuest,
  network: NetworkPolicy,
  warn: (message: string) => void,
): Promise<Readonly<Record<string, string>>> {
  if (typeof network === "string") return {};
  try {
    return (await openEgress(guest.channel, network.allow, warn)).env;
  } catch (error) {
    await guest.stop();
    throw error;
  }
}

/** Takes a sandbox away, also when somebody has deleted its record meanwhile: this process still knows what it made. */
async function removeOwn(
  id: string,
  workspace: Workspace,
  cgroups: readonly string[],
  ended: Promise<void>,
): Promise<void> {
  if (await dismantle(id, () => true, ownRemover, ended)) return;
  for (const path of cgroups) await removeResource({ kind: "cgroup", path });
  for (const resource of resourcesOf(id, workspace)) await removeResource(resource);
}

async function remove(id: string): Promise<void> {
  await dismantle(id, () => true, ownRemover);
}

/** Leaves the files to whoever opens the sandbox next; its control groups are not needed until then. */
async function letGo(id: string): Promise<void> {
  const resources = (await readRecord(id))?.resources ?? [];
  for (const resource of resources)
    if (resource.kind === "cgroup") await removeCgroup(String((resource as { path: unknown }).path));
  await updateRecord(id, {
    state: "kept",
    owner: undefined,
    resources: resources.filter(({ kind }) => kind !== "cgroup"),
  });
}

let reaped: Promise<unknown> | undefined;

/** Removes what dead processes left, the first time this process opens a sandbox. */
async function reapOnce(): Promise<void> {
  // What could not be removed is no reason not to go on: it stays in the ledger, where `listSandboxes` shows it.
  reaped ??= reapRecords(ownRemover, { backend: "local" })
    .then(sweepEtc)
    .catch(() => undefined);
  await reaped;
}
