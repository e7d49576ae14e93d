import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Container } from "@dagger.io/dagger";
import type { Capabilities } from "../../contracts/types.js";
import { assertCapabilities } from "./capabilities.js";
import { type Base, buildBase, DEFAULT_IMAGE, WORK_DIR } from "./dagger/base.js";
import { conformance } from "./dagger/conformance.js";
import { DaggerDriver } from "./dagger/driver.js";
import { checkDaggerOptions } from "./dagger/options.js";
import { probeDagger } from "./dagger/probe.js";
import { isRecipe, type Recipe } from "./dagger/recipe.js";
import { openSession, type Session } from "./dagger/session.js";
import { findSnapshot, loadFiles, removeSnapshot, saveFiles, saveSnapshot } from "./dagger/snapshot.js";
import { Steps } from "./dagger/steps.js";
import { reachService } from "./dagger/tunnel.js";
import { claimRecord, dismantle, type RemoverOf } from "./dismantle.js";
import { SandboxError, toSandboxError } from "./errors.js";
import { failpoint } from "./failpoint.js";
import type { Finding } from "./finding.js";
import { runtimeDir } from "./home.js";
import { createRecord, markReady, updateRecord } from "./ledger.js";
import { validateSandboxOptions } from "./options.js";
import { createSandbox } from "./portable.js";
import { reapRecords } from "./reap-records.js";
import type { Resource } from "./record.js";
import type { DaggerOptions, Driver, Sandbox, SandboxOptions } from "./types.js";

export { conformance, removeSnapshot };

const KEPT_FILES = "files.tar";
/** To start a container takes an engine longer than most commands take. */
const DEFAULT_LINGER = 100;

/** What the Dagger backend keeps; ports are those of its services. */
export function daggerCapabilities(opts: DaggerOptions = {}): Capabilities {
  return {
    isolation: "container",
    killTree: "best-effort",
    network: ["full"],
    limits: [],
    snapshot: "crash-consistent",
    fork: "copy-on-write",
    pty: true,
    user: false,
    ports: Object.values(opts.services ?? {}).some(({ ports = [] }) => ports.length > 0),
    git: false,
    renames: "all",
  };
}

/** Opens a sandbox in a Dagger engine: an image, and a graph that each operation goes on from. */
export async function createDaggerSandbox(opts: SandboxOptions = {}): Promise<Sandbox> {
  validateSandboxOptions(opts);
  try {
    const dagger = checkDaggerOptions(opts);
    checkPossible(opts, dagger);
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

/** A sandbox leaves nothing outside of its own directory: the engine ends what belongs to a session with it. */
export async function removeResource(resource: Resource): Promise<void> {
  throw new SandboxError("tampered", `The dagger backend makes nothing of the kind "${resource.kind}"`);
}

const ownRemover: RemoverOf = async () => removeResource;

/** Enforce or refuse: an engine has no switch for these. */
function checkPossible(opts: SandboxOptions, dagger: DaggerOptions): void {
  const capabilities = daggerCapabilities(dagger);
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
  assertCapabilities(opts, capabilities, "dagger");
}

async function createNew(opts: SandboxOptions, dagger: DaggerOptions): Promise<Sandbox> {
  const recipe: Recipe = { image: opts.image ?? DEFAULT_IMAGE, setup: dagger.setup ?? [] };
  const id = newId();
  const driver = await withSession(opts, dagger, async (session) => {
    const base = await buildBase(session, recipe.image, dagger, opts.signal ?? AbortSignal.timeout(2 ** 31 - 1));
    return await makeDriver({ id, session, base, recipe: { ...recipe, image: base.image }, opts, dagger });
  });
  return createSandbox(driver, opts);
}

async function reopen(id: string, opts: SandboxOptions, dagger: DaggerOptions): Promise<Sandbox> {
  const { reopen: kept } = await claimRecord(id);
  try {
    if (!isRecipe(kept)) throw new SandboxError("tampered", `The record of sandbox "${id}" is damaged`);
    const again = { ...dagger, setup: kept.setup };
    const driver = await withSession(opts, dagger, async (session) => {
      const base = await buildBase(session, kept.image, again, opts.signal ?? AbortSignal.timeout(2 ** 31 - 1));
      const known = { ...opts, keep: opts.keep ?? true };
      const made = new DaggerDriver(partsOf({ id, session, base, recipe: kept, opts: known, dagger: again }));
      await loadFiles(made, join(runtimeDir(id), KEPT_FILES));
      return made;
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
async function makeDriver(plan: Plan): Promise<DaggerDriver> {
  const { id, opts } = plan;
  await createRecord({ id, backend: "dagger", workDir: WORK_DIR });
  try {
    await failpoint("create.recorded");
    const driver = new DaggerDriver(partsOf(plan));
    if (opts.keep === true) await keepFiles(driver, plan.recipe);
    else markReady(id);
    await failpoint("create.ready");
    return driver;
  } catch (error) {
    await remove(id).catch(() => undefined);
    throw error;
  }
}

function partsOf(plan: Plan): ConstructorParameters<typeof DaggerDriver>[0] {
  const { id, session, base, recipe, opts, dagger } = plan;
  const secrets = Object.keys(dagger.secrets ?? {});
  const { linger = DEFAULT_LINGER } = dagger;
  return {
    id,
    workDir: WORK_DIR,
    capabilities: daggerCapabilities(dagger),
    baseEnv: base.env,
    steps: new Steps(session, plan.from ?? base.container, { workDir: WORK_DIR, secrets, linger }),
    operations: (driver) => ({
      snapshot: async () => {
        const taken = await saveSnapshot(driver, recipe);
        if (await driver.steps.isIdle()) session.snapshots.set(taken, driver.steps.current);
        return taken;
      },
      restore: (taken) => restore(driver, plan, taken),
      fork: (count) => fork(driver, count, plan),
      url: (port) => reachService(session, base.services, port),
    }),
    release: async (driver) => {
      if (opts.keep === true) {
        await driver.steps.settle();
        await keepFiles(driver, recipe, true);
      }
      await driver.steps.close();
      if (opts.keep !== true) await remove(id);
      await session.release();
    },
  };
}

/** Goes back to a snapshot: to its container, where this session has it, else to one that is built again. */
async function restore(driver: DaggerDriver, { session, base, recipe }: Plan, id: string): Promise<void> {
  const found = await findSnapshot(id);
  if (!(await driver.steps.isIdle())) {
    throw new SandboxError("conflict", "A step of the graph cannot be replaced while something runs in it", {
      hint: "end what was spawned, then restore",
    });
  }
  const before = driver.steps.current;
  const known = session.snapshots.get(id);
  if (known !== undefined) {
    driver.steps.replace(known);
    return;
  }
  if (found.recipe.image !== recipe.image) {
    throw new SandboxError("conflict", `The snapshot "${id}" is one of the image ${found.recipe.image}`, {
      retryable: false,
      hint: `open a sandbox with that image`,
    });
  }
  driver.onWarning?.(`Files outside ${WORK_DIR} are those of the image: snapshot ${id} is of another session`);
  driver.steps.replace(base.container);
  try {
    await loadFiles(driver, found.archive);
  } catch (error) {
    driver.steps.replace(before);
    throw error;
  }
}

/** Copies of a sandbox as it is now, which share its graph; all of them or none. */
async function fork(driver: DaggerDriver, count: number, plan: Plan): Promise<Driver[]> {
  const made: DaggerDriver[] = [];
  const files = (await driver.steps.isIdle())
    ? undefined
    : join(runtimeDir(driver.id), `fork-${randomBytes(4).toString("hex")}`);
  const { signal: _, ...opts } = plan.opts;
  try {
    if (files !== undefined) await saveFiles(driver, files);
    while (made.length < count) {
      const from = files === undefined ? driver.steps.current : plan.base.container;
      const copy = await withSession(opts, plan.dagger, (session) => {
        return makeDriver({ ...plan, id: newId(), session, opts, from });
      });
      made.push(copy);
      if (files !== undefined) await loadFiles(copy, files);
      await failpoint("fork.made");
    }
    return made;
  } catch (error) {
    for (const copy of made) await copy.destroy().catch(() => undefined);
    throw error;
  }
}

/** Writes down what a later process needs to open the sandbox again; with `isLast` this process has no part in it any more. */
async function keepFiles(driver: DaggerDriver, recipe: Recipe, isLast = false): Promise<void> {
  await saveFiles(driver, join(runtimeDir(driver.id), KEPT_FILES));
  await updateRecord(driver.id, { state: "kept", reopen: recipe, ...(isLast && { owner: undefined }) });
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
