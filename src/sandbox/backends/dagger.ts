import { randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Container } from "@dagger.io/dagger";
import type { Backend, Resource, SandboxEntry, SnapshotRecord } from "../../../contracts/backend.js";
import { SandboxError } from "../../../contracts/errors.js";
import type { Capabilities } from "../../../contracts/types.js";
import { snapshotInTime } from "../../ledger.js";
import { NO_REPOSITORY } from "../capabilities.js";
import {
  baseOfSnapshot,
  createOperations,
  fillMirror,
  forkMirror,
  mirroredTree,
  nameForkedBranch,
  planMirror,
  removeGitResource,
  replaceFiles,
} from "../git.js";
import { openWith, otherPlace } from "../lifecycle.js";
import type { Driver, Sandbox, SandboxOptions } from "../types.js";
import { buildBase, type DaggerBase, DEFAULT_IMAGE, type Reachable, WORK_DIR } from "./dagger/base.js";
import { conformance } from "./dagger/conformance.js";
import type { DaggerOptions } from "./dagger/dagger-options.js";
import { DaggerDriver } from "./dagger/driver.js";
import { HOST_ALIAS } from "./dagger/guest-call.js";
import { applyLayer } from "./dagger/layer.js";
import { checkNoPlace, daggerOptions } from "./dagger/options.js";
import { probeDagger } from "./dagger/probe.js";
import { isSaved, type Recipe } from "./dagger/recipe.js";
import { restoreSnapshot } from "./dagger/restore.js";
import { openSession, type Session } from "./dagger/session.js";
import { loadFiles, removeSnapshot, saveFiles, saveSnapshot, saveState } from "./dagger/snapshot.js";
import { SpawnedServices } from "./dagger/spawned-services.js";
import { Steps } from "./dagger/steps.js";
import { reachService } from "./dagger/tunnel.js";

export type * from "./dagger/dagger-options.js";

/** Starting a container takes an engine longer than most commands take. */
const DEFAULT_LINGER = 100;

/** Sandboxes in a Dagger engine: an image, and a graph that each operation extends. */
export const dagger: Backend = {
  name: "dagger",
  capabilities: () => daggerCapabilities(true),
  options: daggerOptions,
  check: checkPossible,
  images: ({ image = DEFAULT_IMAGE, dagger: own }) => [
    image,
    ...Object.values(own?.services ?? {}).map((service) => service.image),
  ],
  // The variables of services may contain passwords.
  writtenOptions: ["cli", "setup", "secrets", "linger"],
  secrets: (opts) => [opts.dagger?.session?.token],
  async create(opts, entry) {
    const { repo } = opts;
    const mirror =
      repo === undefined ? undefined : await planMirror(entry.id, { ...opts, repo }, baseOfSnapshot(entry.snapshot));
    const { image, workDir, dagger: own } = startOf(opts, entry.snapshot);
    return await withSession(own, entry.signal, async (session) => {
      const base = await buildBase(session, { image, ...(workDir && { workDir }) }, own, entry.signal);
      const recipe: Recipe = {
        image: base.image,
        setup: own.setup ?? [],
        ...(workDir && { workDir }),
        ...(mirror && { base: mirror.base }),
      };
      const fill = async (made: DaggerDriver): Promise<void> => {
        if (mirror === undefined) return;
        for (const note of await fillMirror(mirror, made, entry.signal)) entry.warn(note);
      };
      return await makeDriver({ entry, session, base, recipe, opts, dagger: own }, mirror?.resources ?? [], fill);
    });
  },
  async reopen(kept, opts, entry) {
    if (!isSaved(kept) || !kept.archive) {
      throw new SandboxError("tampered", `The record of sandbox "${entry.id}" is damaged`);
    }
    const { removed, archive: name, ...recipe } = kept;
    const own = { ...opts.dagger, setup: kept.setup };
    const archive = join(entry.directory, basename(name));
    return await withSession(own, entry.signal, async (session) => {
      const base = await buildBase(session, kept, own, entry.signal);
      const from = removed && (await applyLayer(session, base.container, archive, removed));
      const plan = { entry, session, base, recipe: { ...recipe, image: base.image }, opts, dagger: own };
      const made = new DaggerDriver(partsOf({ ...plan, ...(from && { from }) }));
      try {
        if (from === undefined) await loadFiles(made, archive);
        return made;
      } catch (error) {
        await made.steps.close();
        throw error;
      }
    });
  },
  /** Removes what belongs to a repository. The engine itself ends what belongs to a session. */
  async removeResource(resource) {
    if (await removeGitResource(resource)) return;
    throw new SandboxError("tampered", `The dagger backend makes nothing of the kind "${resource.kind}"`);
  },
  removeSnapshot,
  probe: () => probeDagger(createDaggerSandbox),
  conformance,
};

const OPEN_NETWORK = "a Dagger engine gives its network to every container";
const NO_LIMITS = "a Dagger engine can't limit a container";

/** What the Dagger backend enforces. */
export function daggerCapabilities(git = false): Capabilities {
  return {
    isolation: "container",
    killTree: "best-effort",
    network: ["full"],
    limits: [],
    snapshot: "crash-consistent",
    fork: "copy-on-write",
    pty: true,
    user: false,
    workDir: true,
    paths: ["workdir", "sandbox"],
    combinedOutput: true,
    ports: true,
    git,
    keep: "all",
    renames: "all",
    reasons: {
      ...Object.fromEntries(["memory", "cpus", "pids", "disk"].map((name) => [`limits.${name}`, NO_LIMITS])),
      "network.none": OPEN_NETWORK,
      "network.allow": OPEN_NETWORK,
      liveNetwork: OPEN_NETWORK,
      secrets: OPEN_NETWORK,
      networkRules: OPEN_NETWORK,
      user: "an engine runs all commands of a container as one user",
      ...(!git && { git: NO_REPOSITORY }),
    },
  };
}

/** Opens a sandbox in a Dagger engine. */
export function createDaggerSandbox(opts: SandboxOptions = {}): Promise<Sandbox> {
  return openWith(dagger, opts);
}

/** Enforce or refuse: an engine has no setting for these. */
function checkPossible(opts: SandboxOptions): void {
  checkNoPlace(opts);
  const kind = typeof opts.network === "object" ? "{ allow }" : `"${opts.network}"`;
  if (opts.network !== undefined && opts.network !== "full") {
    throw new SandboxError("unsupported", `The dagger backend can't enforce network ${kind}: ${OPEN_NETWORK}`, {
      backend: "dagger",
      hint: 'set network: "full", or use the local or docker backend',
    });
  }
  const [limit] = Object.entries(opts.limits ?? {}).filter(([, value]) => value !== undefined);
  if (limit !== undefined) {
    throw new SandboxError(
      "unsupported",
      `The dagger backend can't enforce limits.${limit[0]} (${limit[1]}): ${NO_LIMITS}`,
      {
        backend: "dagger",
        hint: "use the local or docker backend",
      },
    );
  }
}

/** What the container is built from: the recipe of the snapshot, if it has one, so that its changes fit. */
function startOf(opts: SandboxOptions, snapshot: SnapshotRecord | undefined): Start {
  const { image = DEFAULT_IMAGE, workDir, dagger: own = {} } = opts;
  if (snapshot === undefined || !isSaved(snapshot.details)) return { image, workDir, dagger: own };
  const saved = snapshot.details;
  const { workDir: place = WORK_DIR } = saved;
  if (saved.removed !== undefined && workDir !== undefined && workDir !== place) throw otherPlace(snapshot.id, place);
  return {
    image: opts.image ?? saved.image,
    workDir: workDir ?? saved.workDir,
    dagger: { ...own, setup: own.setup ?? saved.setup },
  };
}

interface Start {
  readonly image: string;
  readonly workDir: string | undefined;
  readonly dagger: DaggerOptions;
}

/** Runs work that needs a session, and closes the session if the work fails. */
async function withSession<T>(
  dagger: DaggerOptions,
  signal: AbortSignal,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  const session = await openSession(dagger, signal);
  try {
    return await work(session);
  } catch (error) {
    await session.close();
    throw error;
  }
}

interface Plan {
  entry: SandboxEntry;
  session: Session;
  base: DaggerBase;
  recipe: Recipe;
  opts: SandboxOptions;
  dagger: DaggerOptions;
  /** Where it starts, if not from the base. */
  from?: Container;
}

/** Makes the driver of a sandbox: all of it or nothing. */
async function makeDriver(
  plan: Plan,
  resources: readonly Resource[],
  fill: (driver: DaggerDriver) => Promise<void>,
): Promise<DaggerDriver> {
  await plan.entry.createRecord({ workDir: plan.recipe.workDir ?? WORK_DIR, resources });
  const driver = new DaggerDriver(partsOf(plan));
  try {
    await fill(driver);
    // Recorded before it is ready: a kept one must have its files whenever this process dies.
    if (plan.entry.keep) await saveForReopen(driver, plan);
    return driver;
  } catch (error) {
    await driver.steps.close();
    throw error;
  }
}

function partsOf(plan: Plan): ConstructorParameters<typeof DaggerDriver>[0] {
  const { entry, session, base, recipe, opts, dagger } = plan;
  const { workDir = WORK_DIR } = recipe;
  const inside = { workDir, secrets: Object.keys(dagger.secrets ?? {}) };
  const services = new SpawnedServices(session, { ...inside, taken: new Set([HOST_ALIAS, ...base.services.keys()]) });
  const { linger = DEFAULT_LINGER } = dagger;
  const ending = new AbortController();
  let settled = async (): Promise<void> => undefined;
  return {
    id: entry.id,
    workDir,
    capabilities: daggerCapabilities(recipe.base !== undefined),
    baseEnv: base.env,
    services,
    steps: new Steps(session, plan.from ?? base.container, { ...inside, linger, services: services.running }),
    operations: (driver) => {
      const reachable = (): Reachable[] => [...services.running.values(), ...base.services.values()];
      const url = (port: number): Promise<string | undefined> => reachService(session, reachable(), port);
      const copy = (count: number): Promise<Driver[]> => fork(driver, count, plan);
      if (recipe.base === undefined) return { url, fork: copy, ...ownOperations(driver, plan) };
      const tree = mirroredTree(recipe.base, driver, ending.signal);
      const { settled: all, ...operations } = createOperations(tree, {
        fork: (_, count) => copy(count),
        token: opts.githubToken,
      });
      settled = all;
      return { url, ...operations };
    },
    close: async (driver) => {
      if (entry.keep) {
        await driver.steps.settle();
        await saveForReopen(driver, plan);
      }
      ending.abort();
      await driver.steps.close();
      await settled();
      await session.close();
    },
  };
}

/** Without a repository we save snapshots ourselves. In the same session their containers still exist, so restoring is free. */
function ownOperations(driver: DaggerDriver, plan: Plan): Pick<Driver, "snapshot" | "restore"> {
  return {
    snapshot: async (signal) => {
      const container = await driver.steps.settled();
      const taken = await snapshotInTime(signal, () => saveSnapshot(driver, plan), removeSnapshot);
      // If files changed meanwhile, the two differ; then the archive alone is the snapshot.
      if (container !== undefined && container === (await driver.steps.settled())) {
        plan.session.snapshots.set(taken, container);
      }
      return taken;
    },
    restore: (taken) => restoreSnapshot(driver, plan, taken),
  };
}

/** Copies of a sandbox as it is now, which share its graph: all of them or none. */
async function fork(driver: DaggerDriver, count: number, plan: Plan): Promise<Driver[]> {
  const settled = await driver.steps.settled();
  const files = settled ? undefined : join(plan.entry.directory, `fork-${randomBytes(4).toString("hex")}`);
  const create = async (entry: SandboxEntry, n: number): Promise<DaggerDriver> => {
    const from = settled ?? driver.steps.current;
    const mirror = plan.recipe.base && forkMirror({ base: plan.recipe.base }, n);
    const recipe = { ...plan.recipe, ...(mirror && { base: mirror.base }) };
    const fill = async (copy: DaggerDriver): Promise<void> => {
      if (files !== undefined) await replaceFiles({ driver: copy }, [createReadStream(files)], { keepGit: false });
      if (mirror) await nameForkedBranch(mirroredTree(mirror.base, copy, entry.signal));
    };
    return await withSession(plan.dagger, entry.signal, (session) =>
      makeDriver({ ...plan, entry, session, from, recipe }, mirror?.resources ?? [], fill),
    );
  };
  try {
    if (files !== undefined) await saveFiles(driver, files);
    return await plan.entry.fork(count, create);
  } finally {
    if (files !== undefined) await rm(files, { force: true });
  }
}

/** Saves what a later process needs to reopen the sandbox. */
async function saveForReopen(driver: DaggerDriver, plan: Plan): Promise<void> {
  const { directory } = plan.entry;
  // The record and the file that it names change together, whenever this process dies.
  const archive = `kept-${randomBytes(4).toString("hex")}.tar`;
  const saved = await saveState(driver, plan, join(directory, archive));
  await plan.entry.savePlan({ ...saved, archive });
  const old = (await readdir(directory)).filter((name) => name.startsWith("kept-") && name !== archive);
  for (const name of old) await rm(join(directory, name), { force: true });
}
