import { randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Container } from "@dagger.io/dagger";
import { SandboxError, toSandboxError } from "../../../contracts/errors.js";
import type { Finding } from "../../../contracts/finding.js";
import type { Capabilities } from "../../../contracts/types.js";
import {
  claimRecord,
  createRecord,
  dismantle,
  markReady,
  type RemoverOf,
  type Resource,
  updateRecord,
} from "../../ledger.js";
import { failpoint } from "../../machine/failpoint.js";
import { runtimeDir } from "../../machine/home.js";
import { assertCapabilities } from "../capabilities.js";
import {
  createOperations,
  fillMirror,
  forkMirror,
  mirroredTree,
  nameForkedBranch,
  planMirror,
  removeGitResource,
  replaceFiles,
} from "../git.js";
import { keptOptions, reopenOptions } from "../kept-options.js";
import { validateSandboxOptions } from "../options.js";
import { createSandbox } from "../portable.js";
import { reapRecords } from "../reap-records.js";
import type { DaggerOptions, Driver, Sandbox, SandboxOptions } from "../types.js";
import { type Base, buildBase, DEFAULT_IMAGE, type Reachable, WORK_DIR } from "./dagger/base.js";
import { conformance } from "./dagger/conformance.js";
import { DaggerDriver } from "./dagger/driver.js";
import { HOST_ALIAS } from "./dagger/guest-call.js";
import { applyLayer } from "./dagger/layer.js";
import { checkDaggerOptions } from "./dagger/options.js";
import { probeDagger } from "./dagger/probe.js";
import { isSaved, type Recipe } from "./dagger/recipe.js";
import { restoreSnapshot } from "./dagger/restore.js";
import { openSession, type Session } from "./dagger/session.js";
import { loadFiles, removeSnapshot, saveFiles, saveSnapshot, saveState } from "./dagger/snapshot.js";
import { SpawnedServices } from "./dagger/spawned-services.js";
import { Steps } from "./dagger/steps.js";
import { reachService } from "./dagger/tunnel.js";

export { conformance, removeSnapshot };

/** To start a container takes an engine longer than most commands take. */
const DEFAULT_LINGER = 100;

/** What the Dagger backend keeps; ports are those of its services. */
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
    ports: true,
    git,
    renames: "all",
  };
}

/** What a sandbox with a repository keeps. */
export function capabilities(): Capabilities {
  return daggerCapabilities(true);
}

/** Opens a sandbox in a Dagger engine: an image, and a graph that each operation goes on from. */
export async function createDaggerSandbox(opts: SandboxOptions = {}): Promise<Sandbox> {
  validateSandboxOptions(opts);
  try {
    const dagger = checkDaggerOptions(opts);
    checkPossible(opts);
    opts.signal?.throwIfAborted();
    await reapOnce();
    return await (opts.id === undefined ? createNew(opts, dagger) : reopen(opts.id, opts, dagger));
  } catch (error) {
    const place = { backend: "dagger", operation: "open" };
    if (!opts.signal?.aborted) throw toSandboxError(error, place);
    throw new SandboxError("aborted", "The creation of the sandbox was aborted", { ...place, cause: error });
  }
}

/** What the registry calls. */
export function open(opts: SandboxOptions): Promise<Sandbox> {
  return createDaggerSandbox(opts);
}

/** Looks at what the Dagger backend needs on this machine. */
export function probe(): Promise<Finding[]> {
  return probeDagger(createDaggerSandbox);
}

/** Takes away what belongs to a repository; what belongs to a session, the engine ends with it. */
export async function removeResource(resource: Resource): Promise<void> {
  if (await removeGitResource(resource)) return;
  throw new SandboxError("tampered", `The dagger backend makes nothing of the kind "${resource.kind}"`);
}

const ownRemover: RemoverOf = async () => removeResource;

/** Enforce or refuse: an engine has no switch for these. */
function checkPossible(opts: SandboxOptions): void {
  const kind = typeof opts.network === "object" ? "{ allow }" : `"${opts.network}"`;
  if (opts.network !== undefined && opts.network !== "full") {
    throw new SandboxError("unsupported", `The dagger backend cannot keep network ${kind}`, {
      backend: "dagger",
      hint: 'a Dagger engine gives every container its network; ask for network: "full", or use the local or docker backend',
    });
  }
  const [limit] = Object.entries(opts.limits ?? {}).filter(([, value]) => value !== undefined);
  if (limit !== undefined) {
    throw new SandboxError("unsupported", `The dagger backend cannot keep limits.${limit[0]} (${limit[1]})`, {
      backend: "dagger",
      hint: "a Dagger engine has no limits for a container; use the local or docker backend",
    });
  }
  assertCapabilities(opts, daggerCapabilities(), "dagger");
}

async function createNew(opts: SandboxOptions, dagger: DaggerOptions): Promise<Sandbox> {
  const id = newId();
  const { repo, image = DEFAULT_IMAGE } = opts;
  const mirror = repo === undefined ? undefined : await planMirror(id, { ...opts, repo });
  const warnings: string[] = [];
  const driver = await withSession(opts, dagger, async (session) => {
    const base = await buildBase(session, image, dagger, signalOf(opts));
    const recipe: Recipe = { image: base.image, setup: dagger.setup ?? [], ...(mirror && { base: mirror.base }) };
    const fill = async (made: DaggerDriver): Promise<void> => {
      if (mirror !== undefined) warnings.push(...(await fillMirror(mirror, made, opts.signal)));
    };
    return await makeDriver({ id, session, base, recipe, opts, dagger }, mirror?.resources ?? [], fill);
  });
  const sandbox = createSandbox(driver, opts);
  for (const warning of warnings) driver.onWarning?.(warning);
  return sandbox;
}

function signalOf({ signal }: SandboxOptions): AbortSignal {
  return signal ?? new AbortController().signal;
}

async function reopen(id: string, given: SandboxOptions, dagger: DaggerOptions): Promise<Sandbox> {
  const { reopen: kept } = await claimRecord(id);
  try {
    if (!isSaved(kept) || !kept.archive) {
      throw new SandboxError("tampered", `The record of sandbox "${id}" is damaged`);
    }
    const { removed, archive: name, options, ...recipe } = kept;
    const opts = reopenOptions(given, options, { network: "full", isolation: "required" });
    const again = { ...dagger, setup: kept.setup };
    const archive = join(runtimeDir(id), basename(name));
    const driver = await withSession(opts, dagger, async (session) => {
      const base = await buildBase(session, kept.image, again, signalOf(opts));
      const from = removed && (await applyLayer(session, base.container, archive, removed));
      const pinned = { ...recipe, image: base.image };
      const plan = { id, session, base, recipe: pinned, opts: { ...opts, keep: opts.keep ?? true }, dagger: again };
      const made = new DaggerDriver(partsOf({ ...plan, ...(from && { from }) }));
      try {
        if (from === undefined) await loadFiles(made, archive);
        return made;
      } catch (error) {
        await made.steps.close();
        throw error;
      }
    });
    return createSandbox(driver, opts);
  } catch (error) {
    await updateRecord(id, { owner: undefined });
    throw error;
  }
}

/** Runs work that needs a session, which is given back when the work fails. */
async function withSession<T>(
  opts: SandboxOptions,
  dagger: DaggerOptions,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  const session = await openSession(dagger, opts.signal);
  try {
    return await work(session);
  } catch (error) {
    await session.release();
    throw error;
  }
}

interface Plan {
  id: string;
  session: Session;
  base: Base;
  recipe: Recipe;
  opts: SandboxOptions;
  dagger: DaggerOptions;
  /** Where it starts, when that is not the base. */
  from?: Container;
}

/** Enters a sandbox into the ledger and makes its driver; all of it or nothing. */
async function makeDriver(
  plan: Plan,
  resources: readonly Resource[],
  fill: (driver: DaggerDriver) => Promise<void>,
): Promise<DaggerDriver> {
  const { id, opts } = plan;
  await createRecord({ id, backend: "dagger", workDir: WORK_DIR, resources });
  let driver: DaggerDriver | undefined;
  try {
    await failpoint("create.recorded");
    driver = new DaggerDriver(partsOf(plan));
    await fill(driver);
    // One that is ready too late must not be kept: nobody would be given its id.
    opts.signal?.throwIfAborted();
    if (opts.keep === true) await keepState(driver, plan);
    else markReady(id);
    await failpoint("create.ready");
    return driver;
  } catch (error) {
    await driver?.steps.close();
    // What cannot be taken away now stays in the ledger for `reap`.
    await remove(id).catch(() => undefined);
    throw error;
  }
}

function partsOf(plan: Plan): ConstructorParameters<typeof DaggerDriver>[0] {
  const { id, session, base, recipe, opts, dagger } = plan;
  const inside = { workDir: WORK_DIR, secrets: Object.keys(dagger.secrets ?? {}) };
  const services = new SpawnedServices(session, { ...inside, taken: new Set([HOST_ALIAS, ...base.services.keys()]) });
  const { linger = DEFAULT_LINGER } = dagger;
  const ending = new AbortController();
  let settled = async (): Promise<void> => undefined;
  return {
    id,
    workDir: WORK_DIR,
    capabilities: daggerCapabilities(recipe.base !== undefined),
    baseEnv: base.env,
    services,
    steps: new Steps(session, plan.from ?? base.container, { ...inside, linger, services: services.running }),
    operations: (driver) => {
      const reachable = (): Reachable[] => [...services.running.values(), ...base.services.values()];
      const url = (port: number): Promise<string> => reachService(session, reachable(), port);
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
    release: async (driver) => {
      if (opts.keep === true) {
        await driver.steps.settle();
        await keepState(driver, plan, true);
      }
      ending.abort();
      await driver.steps.close();
      await settled();
      if (opts.keep !== true) await remove(id);
      await session.release();
    },
  };
}

/** Without a repository a snapshot is ours; in this session its container is still there, and costs nothing to go back to. */
function ownOperations(driver: DaggerDriver, plan: Plan): Pick<Driver, "snapshot" | "restore"> {
  return {
    snapshot: async () => {
      const container = await driver.steps.settled();
      const taken = await saveSnapshot(driver, plan);
      // What was changed meanwhile is in the one or in the other; then the archive alone is the snapshot.
      if (container !== undefined && container === (await driver.steps.settled())) {
        plan.session.snapshots.set(taken, container);
      }
      return taken;
    },
    restore: (taken) => restoreSnapshot(driver, plan, taken),
  };
}

/** Copies of a sandbox as it is now, which share its graph; all of them or none. */
async function fork(driver: DaggerDriver, count: number, plan: Plan): Promise<Driver[]> {
  const made: DaggerDriver[] = [];
  const settled = await driver.steps.settled();
  const files = settled ? undefined : join(runtimeDir(driver.id), `fork-${randomBytes(4).toString("hex")}`);
  const { signal: _, ...opts } = plan.opts;
  try {
    if (files !== undefined) await saveFiles(driver, files);
    while (made.length < count) {
      const from = settled ?? driver.steps.current;
      const mirror = plan.recipe.base && forkMirror({ base: plan.recipe.base }, made.length + 1);
      const recipe = { ...plan.recipe, ...(mirror && { base: mirror.base }) };
      const fill = async (copy: DaggerDriver): Promise<void> => {
        if (files !== undefined) await replaceFiles({ driver: copy }, [createReadStream(files)], { keepGit: false });
        if (mirror) await nameForkedBranch(mirroredTree(mirror.base, copy, new AbortController().signal));
      };
      const copy = await withSession(opts, plan.dagger, (session) => {
        return makeDriver({ ...plan, id: newId(), session, opts, from, recipe }, mirror?.resources ?? [], fill);
      });
      made.push(copy);
      await failpoint("fork.made");
    }
    return made;
  } catch (error) {
    for (const copy of made) await copy.destroy().catch(() => undefined);
    throw error;
  } finally {
    if (files !== undefined) await rm(files, { force: true });
  }
}

/** Writes down what a later process needs to open the sandbox again; with `isLast` this process has no part in it any more. */
async function keepState(driver: DaggerDriver, plan: Plan, isLast = false): Promise<void> {
  const directory = runtimeDir(driver.id);
  // The record and the file that it names change at one moment, whenever this process dies.
  const archive = `kept-${randomBytes(4).toString("hex")}.tar`;
  const saved = await saveState(driver, plan, join(directory, archive));
  const reopen = { ...saved, archive, options: keptOptions(plan.opts) };
  await updateRecord(driver.id, { state: "kept", reopen, ...(isLast && { owner: undefined }) });
  const old = (await readdir(directory)).filter((name) => name.startsWith("kept-") && name !== archive);
  for (const name of old) await rm(join(directory, name), { force: true });
}

async function remove(id: string): Promise<void> {
  await dismantle(id, () => true, ownRemover);
}

function newId(): string {
  return randomBytes(8).toString("hex");
}

let reaped: Promise<unknown> | undefined;

/** Removes what dead processes left, the first time this process opens a sandbox. */
async function reapOnce(): Promise<void> {
  // What could not be removed is no reason not to go on: it stays in the ledger, where `listSandboxes` shows it.
  reaped ??= reapRecords(ownRemover, { backend: "dagger" }).catch(() => undefined);
  await reaped;
}
