import type { Backend, SandboxEntry } from "../../../contracts/backend.js";
import { SandboxError } from "../../../contracts/errors.js";
import type { Capabilities, Limits, NetworkPolicy } from "../../../contracts/types.js";
import { failpoint } from "../../machine/failpoint.js";
import { NO_REPOSITORY } from "../capabilities.js";
import {
  type Egress,
  type EgressOptions,
  type LiveSecrets,
  openEgressFor,
  superviseEgress,
  type Trust,
  trustFor,
  withSecrets,
} from "../egress.js";
import {
  baseOfSnapshot,
  createOperations,
  fillForks,
  type LiveTree,
  nameForkedBranch,
  parseSourceUrl,
  recheckRepository,
  removeSnapshot,
  shownUrl,
} from "../git.js";
import { findBwrap, openLowPorts, type RunningGuest, startJailedGuest, startPlainGuest } from "../jail.js";
import { openWith } from "../lifecycle.js";
import type { Sandbox, SandboxOptions } from "../types.js";
import { checkBaseDir, checkMounts, protectGit, resolveMounts } from "./local/base-dir.js";
import { trimCache } from "./local/cache.js";
import { startRemoval } from "./local/cleanup.js";
import { conformance } from "./local/conformance.js";
import { LocalDriver } from "./local/driver.js";
import { recordEtc, trimEtc } from "./local/etc-cache.js";
import {
  checkLimits,
  controlGroupPaths,
  enforceableLimits,
  makeControlGroups,
  mountImage,
  processLimit,
  reasonsForLimits,
  refuseLimits,
  removeCgroup,
  scopeCommand,
  scopeOf,
  unmountImage,
} from "./local/limits.js";
import { buildJail, checkBesideToolchains } from "./local/local-jail.js";
import { localTree } from "./local/local-tree.js";
import { plainEnv } from "./local/plain-env.js";
import { probeLocal } from "./local/probe.js";
import { renamesIn } from "./local/renames.js";
import { placeTrust, removeTrust, TRUST_FOLDER, writeTrust } from "./local/trust.js";
import {
  checkHostDir,
  hostDirOf,
  type MadeWorkspace,
  type PlannedWorkspace,
  planFork,
  planWorkspace,
  type Workspace,
} from "./local/workspace.js";

export type * from "./local/local-options.js";

/** Sandboxes on this machine, isolated by namespaces. */
export const local: Backend = {
  name: "local",
  capabilities: (opts = {}) => localCapabilities(opts.isolation, true, "all", opts),
  canOpenNetwork: ({ isolation = "required" }) => isolation === "required",
  runsHere: true,
  takesBaseDir: true,
  check: checkPossible,
  resolveOptions: (opts) => (opts.mounts === undefined ? opts : { ...opts, mounts: resolveMounts(opts.mounts) }),
  async create(opts, entry) {
    await trimOnce();
    const planned = await planWorkspace(entry.id, opts, baseOfSnapshot(entry.snapshot));
    return await makeDriver(planned, opts, entry);
  },
  async reopen(plan, opts, entry) {
    const { workspace } = plan as Plan;
    const { kind, workDir, base } = workspace;
    checkHostDir(workspace);
    if (base !== undefined) recheckRepository(base.repository);
    // The user may have created a git directory there since.
    if (kind === "base-dir") workspace.trees = protectGit(checkBaseDir(workDir));
    return await withSecrets(opts, entry, async (secrets) => {
      if (workspace.disk !== undefined) await mountImage(workspace.disk, entry.signal);
      return await startDriver(workspace, opts, entry, secrets);
    });
  },
  removeResource: (resource, { beside }) => startRemoval(resource, beside),
  removeSnapshot,
  trimCache,
  probe: () => probeLocal(createLocalSandbox, enforceableLimits()),
  conformance,
};

let trimmed: Promise<void> | undefined;

/** Removes prepared directories that have not been used for long, the first time this process makes a sandbox. */
async function trimOnce(): Promise<void> {
  trimmed ??= trimEtc().catch(() => undefined);
  await trimmed;
}

/** What a kept sandbox is reopened from. */
interface Plan {
  workspace: Workspace;
}

/** What the local backend enforces on this machine with this kind of isolation, with or without a repository. */
export function localCapabilities(
  isolation: "required" | "none" = "required",
  git = true,
  renames: NonNullable<Capabilities["renames"]> = "all",
  files: Pick<SandboxOptions, "repo" | "baseDir" | "workspace" | "limits"> = {},
): Capabilities {
  const confined = isolation === "required";
  const kind = { ...files, isolation };
  return {
    isolation: confined ? "namespaces" : "none",
    killTree: confined ? "complete" : "best-effort",
    network: confined ? ["none", "full", "allow"] : ["full"],
    liveNetwork: confined,
    networkRules: confined,
    limits: enforceableLimits(kind),
    snapshot: confined ? "consistent" : "crash-consistent",
    fork: "copy",
    pty: true,
    user: false,
    workDir: confined,
    paths: confined ? ["workdir", "sandbox"] : ["workdir"],
    combinedOutput: true,
    secrets: confined,
    ports: true,
    git,
    keep: files.limits?.disk === undefined ? "all" : "files",
    renames,
    reasons: {
      ...reasonsForLimits(kind),
      user: "all its commands run as one user, who owns the files",
      ...(!confined && {
        workDir: "without isolation commands see the paths of the host",
        paths: "without isolation commands reach every path of the host, and file calls must not",
        "network.none": "without isolation commands use the network of the host",
        "network.allow": "without isolation commands use the network of the host",
        liveNetwork: "without isolation commands use the network of the host",
        secrets: "without isolation commands use the network of the host",
        networkRules: "without isolation commands use the network of the host",
      }),
      ...(!git && { git: NO_REPOSITORY }),
      ...(files.limits?.disk !== undefined && { keep: "$HOME and /tmp would not count to limits.disk" }),
    },
  };
}

/** Opens a sandbox on this machine: a git worktree, one of the user's directories, or an empty one. */
export function createLocalSandbox(opts: SandboxOptions = {}): Promise<Sandbox> {
  return openWith(local, opts);
}

/** Makes a workspace and starts a sandbox on it: all of it or nothing. */
async function makeDriver(planned: PlannedWorkspace, opts: SandboxOptions, entry: SandboxEntry): Promise<LocalDriver> {
  const { workDir } = planned;
  // Throws before anything is made.
  checkMounts(opts.mounts ?? [], workDir);
  if (opts.workDir !== undefined) checkBesideToolchains(opts.workDir);
  return await withSecrets(opts, entry, (secrets) => makeWith(planned, opts, entry, secrets));
}

async function makeWith(
  planned: PlannedWorkspace,
  opts: SandboxOptions,
  entry: SandboxEntry,
  secrets: LiveSecrets,
): Promise<LocalDriver> {
  const { workDir, resources } = planned;
  await entry.createRecord({ workDir, resources });
  let made: MadeWorkspace | undefined;
  let driver: LocalDriver | undefined;
  try {
    made = await planned.make(entry.id, entry.signal);
    await entry.savePlan({ workspace: made.workspace } satisfies Plan);
    driver = await startDriver(made.workspace, opts, entry, secrets);
    await made.filled;
    await failpoint("create.populated");
    return driver;
  } catch (error) {
    await driver?.stop();
    await made?.filled?.catch(() => undefined);
    throw error;
  }
}

/** Makes copies of a sandbox as it is now: all of them or none. */
async function forkDrivers(
  tree: LiveTree,
  driver: LocalDriver,
  count: number,
  workspace: Workspace,
  opts: SandboxOptions,
  entry: SandboxEntry,
): Promise<LocalDriver[]> {
  const { kind } = workspace;
  const create = async (own: SandboxEntry, n: number): Promise<LocalDriver> => {
    tree.signal.throwIfAborted();
    const planned = await planFork(own.id, n, workspace, opts.isolation !== "none");
    return await makeDriver(planned, opts, own);
  };
  const complete = async (forks: readonly LocalDriver[]): Promise<void> => {
    const trees = forks.map((fork) => fork.tree);
    if (kind !== "overlay") await fillForks(tree, trees, { areForeign: kind === "base-dir" });
    else for (const fork of trees) await nameForkedBranch(fork);
  };
  if (kind !== "overlay") return await entry.fork(count, create, { complete });
  // A layer is copied unchanged when its fork is made.
  return await entry.fork(count, create, { complete, around: (makeAll) => driver.frozen(makeAll) });
}

/** Enforce or refuse: everything that can't be enforced is an error here, before anything is created. */
function checkPossible(opts: SandboxOptions): void {
  const { isolation = "required" } = opts;
  if (process.platform !== "linux") {
    throw new SandboxError("no_isolation", `The local backend needs Linux; this is ${process.platform}`, {
      hint: `use the docker backend: openSandbox({ backend: "docker" }), or --backend docker`,
    });
  }
  if (isolation === "required") findBwrap();
  checkLimits(opts.limits ?? {});
  refuseLimits(opts.limits ?? {}, opts);
  if (opts.keep === "all" && opts.limits?.disk !== undefined) {
    throw new SandboxError("unsupported", 'The local backend can\'t enforce limits.disk together with keep "all"', {
      hint: "use keep: true, or leave limits.disk out: a kept $HOME and /tmp would not be counted",
    });
  }
  if (opts.image !== undefined) throw unsupported("image", opts.image, "it does not use images");
  if (isolation === "required") return;
  if (opts.repo !== undefined && parseSourceUrl(opts.repo) !== undefined) {
    // Commands would commit in a cached clone, where the commits would get lost.
    throw unsupported("repo", shownUrl(opts.repo), "without isolation it needs the path of a clone, not a URL");
  }
  if (opts.workspace === "overlay") {
    throw unsupported("workspace", opts.workspace, "without isolation there is nothing to mount it in");
  }
  if ((opts.mounts ?? []).length > 0) {
    throw new SandboxError(
      "unsupported",
      "The local backend can't enforce mounts without isolation: commands see every path of the host",
    );
  }
}

function unsupported(option: string, value: string, reason: string): SandboxError {
  return new SandboxError("unsupported", `The local backend can't enforce ${option} "${value}": ${reason}`);
}

async function startDriver(
  workspace: Workspace,
  opts: SandboxOptions,
  entry: SandboxEntry,
  secrets: LiveSecrets,
): Promise<LocalDriver> {
  const { isolation = "required", network = "none", limits = {} } = opts;
  const { id, signal } = entry;
  const { workDir } = workspace;
  // The source of a mount may have been replaced since it was first checked, so check it each time.
  const mounts = checkMounts(opts.mounts ?? [], workDir);
  const cgroups = controlGroupPaths(id, limits);
  for (const path of cgroups) await entry.record({ kind: "cgroup", path });
  makeControlGroups(cgroups, limits);
  await failpoint("create.grouped");
  const confined = isolation === "required";
  const trees = [workspace.root, ...workspace.trees, ...mounts];
  const keptIn = entry.keepsAll ? entry.directory : undefined;
  const processes = processLimit(limits);
  const through = scopeCommand(id, limits, confined);
  const trust = confined ? await trustFor(network, secrets) : undefined;
  const placed = confined && network !== "full" ? await placeTrust(entry.directory, trust) : undefined;
  const own = { workDir, trees, trust: placed, keptIn, network: jailNetwork(network), cgroups, processes, through };
  const jail = confined ? buildJail(own) : undefined;
  if (jail) recordEtc(id, jail.etc);
  const guest = jail
    ? await startJailedGuest(jail.spec, signal)
    : await startPlainGuest(workDir, cgroups, signal, through);
  const groups = through === undefined ? cgroups : [await joinedScope(guest, limits)];
  const supervision = {
    ...superviseEgress(entry, opts),
    trust: {
      made: trust,
      folder: TRUST_FOLDER,
      install: async (next: Trust) => writeTrust(entry.directory, next),
    },
    secrets,
  };
  const egress = confined ? await openWay(guest, network, supervision) : undefined;
  return new LocalDriver({
    id,
    workDir,
    hostDir: hostDirOf(workspace),
    capabilities: localCapabilities(isolation, workspace.base !== undefined, renamesIn(workspace.kind), {
      ...filesOf(workspace),
      limits,
    }),
    baseEnv: { ...(jail?.baseEnv ?? plainEnv(entry.directory)), ...egress?.env, ...secrets.env },
    guest,
    egress,
    cgroups: groups,
    tree: (own, ending) => ({
      ...localTree(id, workspace, confined, own, ending),
      patience: opts.operationTimeout,
    }),
    operations: (own, tree) =>
      createOperations(tree, {
        fork: (_, count) => forkDrivers(tree, own, count, workspace, { ...opts, network: entry.network }, entry),
        token: opts.githubToken,
      }),
    async close() {
      secrets.close();
      await removeTrust(entry.directory);
      if (!entry.keep) return;
      // They are not needed until the sandbox is reopened.
      for (const path of cgroups) await removeCgroup(path);
      if (cgroups.length > 0) await entry.forget(({ kind }) => kind === "cgroup");
      if (workspace.disk !== undefined) await unmountImage(workspace.disk);
    },
    keeps: () => entry.keep,
  });
}

/** The options that gave a workspace its files; what they are decides which limits can be enforced. */
function filesOf({ kind, workDir, base }: Workspace): Pick<SandboxOptions, "repo" | "baseDir" | "workspace"> {
  if (kind === "base-dir") return { baseDir: workDir };
  return base === undefined || kind === "empty" ? {} : { repo: base.repository.gitDir, workspace: kind };
}

/** The scope that a sandbox was started in. The sandbox is ended if it isn't limited as asked. */
async function joinedScope(guest: RunningGuest, limits: Limits): Promise<string> {
  try {
    return scopeOf(guest.pid, limits);
  } catch (error) {
    await guest.stop();
    throw error;
  }
}

/** A list of names is enforced by an empty network; the names are reached through a proxy. */
function jailNetwork(network: NetworkPolicy): "none" | "full" {
  return typeof network === "string" ? network : "none";
}

/** Opens the way out of a confined sandbox; one that can't have it is ended. */
async function openWay(
  guest: RunningGuest,
  network: NetworkPolicy,
  opts: Omit<EgressOptions, "rules" | "prepareNames">,
): Promise<Egress> {
  try {
    return await openEgressFor(guest.channel, network, { ...opts, prepareNames: () => openLowPorts(guest.pid) });
  } catch (error) {
    await guest.stop();
    throw error;
  }
}
