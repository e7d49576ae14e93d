import { posix } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Backend } from "../../contracts/backend.js";
import type { Driver } from "../../contracts/driver.js";
import { SandboxError, toSandboxError } from "../../contracts/errors.js";
import { DEFAULT_OPERATION_TIMEOUT, type Sandbox, type SandboxOptions } from "../../contracts/sandbox.js";
import {
  type Exposure,
  findSandboxId,
  findSnapshotRecord,
  openKeptRecord,
  readRecord,
  type SandboxRecord,
  updateRecord,
} from "../ledger.js";
import { assertCapabilities, reasonFor } from "./capabilities.js";
import { assertReachable } from "./egress.js";
import { sweepScratch } from "./git.js";
import { checkAudit, withAbsoluteAudit } from "./lifecycle/audit.js";
import { missingVariables, reopenOptions, rulesOf, rulesOfRecord } from "./lifecycle/kept-options.js";
import { addLive, dropLive, inTurn, isLive, shareLive } from "./lifecycle/live-sandboxes.js";
import { assertMadeSo, CREATING, madeOf } from "./lifecycle/made-options.js";
import { closeDriver, entryOf, OpenEntry } from "./lifecycle/open-entry.js";
import { openInTime } from "./lifecycle/open-in-time.js";
import { networkOption, validateSandboxOptions } from "./lifecycle/options.js";
import { assertNetwork, assertStillAllowed, exposureOf, underPolicy } from "./lifecycle/policy.js";
import { isLeftOver, reapAtStart, refuseExpired } from "./lifecycle/reap-records.js";
import { fillFromSnapshot, startOptions } from "./lifecycle/start-from-snapshot.js";
import { createEmit, createSandbox, redactError, type SandboxLife } from "./portable.js";

export { discardLive } from "./lifecycle/live-sandboxes.js";
export { labelsSchema, referenceSchema } from "./lifecycle/naming.js";
export { closeDriver } from "./lifecycle/open-entry.js";
export { otherPlace } from "./lifecycle/other-place.js";
export { underPolicy, underTaskPolicy } from "./lifecycle/policy.js";
export {
  isHeld,
  listSandboxes as listRecorded,
  type ReapOptions,
  type ReapReport,
  reapRecords,
  type SandboxInfo,
} from "./lifecycle/reap-records.js";

import { isoTime } from "../util/iso-time.js";
import { check } from "../util/schema.js";

export { checkWorkDir } from "./lifecycle/work-dir.js";

/** Opens a sandbox of a backend that is already loaded. */
export async function openWith(backend: Backend, opts: SandboxOptions = {}): Promise<Sandbox> {
  const { name } = backend;
  validateSandboxOptions(opts, [name]);
  try {
    return await openInTime(name, opts, async (inTime) => {
      const own = ownOptions(backend, inTime);
      if (own.id !== undefined) return await openAgain(backend, await idOf(own.id), own);
      if (own.name === undefined) return await use(await create(backend, own));
      return await inTurn(`name:${own.name}`, () => openNamed(backend, own.name ?? "", own));
    });
  } catch (error) {
    throw redactError(toSandboxError(error, { backend: name, operation: "open" }), secretsOf(backend, opts));
  }
}

/** Makes the ports reachable that the sandbox is opened with: all of them, or it is closed again. */
async function publishPorts(sandbox: Sandbox, discard?: () => void): Promise<Sandbox> {
  try {
    await Promise.all(sandbox.published.map((port) => sandbox.url(port)));
    return sandbox;
  } catch (error) {
    discard?.();
    await sandbox.teardown();
    throw error;
  }
}

/** Throws for options that a backend does not accept or can never enforce, as opening a sandbox would. */
export function checkPossible(backend: Backend, opts: SandboxOptions): void {
  validateSandboxOptions(opts, [backend.name]);
  checkParsed(backend, ownOptions(backend, opts));
}

/** As `checkPossible`, for options that the backend's schema has returned: it may not take them a second time. */
function checkParsed(backend: Backend, own: SandboxOptions): void {
  backend.check?.(own);
  const { isolation = "required" } = own;
  const able = backend.capabilities(own);
  assertCapabilities({ ...own, isolation }, able, backend.name);
  if (own.onBlocked !== undefined && able.liveNetwork !== true) {
    throw new SandboxError(
      "unsupported",
      `The ${backend.name} backend can't ask before it blocks (onBlocked)${reasonFor("liveNetwork", able)}`,
      { hint: "leave onBlocked out" },
    );
  }
  if (own.secrets !== undefined) assertReachable(own.secrets, own.network ?? "none");
  if (own.audit !== undefined) checkAudit(own.audit, own, able, backend.name);
  if (own.keep === "all" && able.keep !== "all") {
    throw new SandboxError(
      "unsupported",
      `The ${backend.name} backend can't keep $HOME and /tmp (keep: "all")${reasonFor("keep", able)}`,
      {
        hint: "use keep: true, which keeps the files of the work directory",
      },
    );
  }
  if (own.snapshot !== undefined && able.snapshot === "none") {
    throw new SandboxError(
      "unsupported",
      `The ${backend.name} backend has no snapshots to start from${reasonFor("snapshot", able)}`,
    );
  }
  if ((own.keep ?? false) !== false && backend.reopen === undefined) {
    throw new SandboxError("unsupported", `The ${backend.name} backend can't keep sandboxes`);
  }
}

/** Makes the sandbox that a caller uses, and makes it known to later calls of this process. */
async function use({ driver, entry, opts, isNew }: Opened): Promise<Sandbox> {
  const life: SandboxLife = {
    async close(closing, isExpired) {
      await closeDriver(closing, isExpired);
      dropLive(closing);
    },
    identify: entryOf,
    async checkNetwork(network) {
      check(network, networkOption, "network");
      await assertNetwork(network);
    },
    opened: (sandbox, of) => {
      const own = entryOf(of);
      addLive(sandbox, of.id === driver.id ? opts : forkOptionsOf(opts, own), () => own?.discard());
    },
  };
  const sandbox = createSandbox(driver, { ...opts, expiresAt: entry.expiresAt }, life);
  entry.deliverWarnings();
  // Nobody would get the id of one that is made and kept.
  return await publishPorts(sandbox, isNew ? () => entry.discard() : undefined);
}

/** A fork has no name, and nothing makes it a second time. Its network and secrets are what the sandbox had by then. */
function forkOptionsOf(
  { name: _, ...opts }: SandboxOptions,
  fork: Pick<OpenEntry, "network" | "secrets"> | undefined,
): SandboxOptions {
  return fork === undefined ? opts : { ...opts, network: fork.network, secrets: fork.secrets };
}

/** Opens a sandbox with a name: a new one or, if the call asks for that, the one that has the name. */
async function openNamed(backend: Backend, name: string, given: SandboxOptions): Promise<Sandbox> {
  const id = given.ifExists === "reopen" ? await findSandboxId(name) : undefined;
  const record = id === undefined ? undefined : await readRecord(id);
  // What a dead process left, or another one is removing, is not there any more.
  if (record === undefined || isLeftOver(record)) return await use(await create(backend, given));
  assertMadeSo(record, given);
  const rest = Object.entries(given).filter(([option]) => !CREATING.some((creating) => creating === option));
  return await openAgain(backend, record.id, Object.fromEntries(rest) as SandboxOptions);
}

/** Opens a sandbox that exists: a kept one, or a second handle to one that this process has open. */
async function openAgain(backend: Backend, id: string, given: SandboxOptions): Promise<Sandbox> {
  return await inTurn(`id:${id}`, async () => {
    if (isLive(id)) assertBackend(backend, id, (await readRecord(id))?.backend);
    return (await shareLive(id, withoutDefaults(backend, given))) ?? (await use(await reopen(backend, id, given)));
  });
}

/** The options of a call without those of the backend, if it has given none of them: an open sandbox has what it was opened with. */
function withoutDefaults({ name, options }: Backend, given: SandboxOptions): SandboxOptions {
  const { [name]: own, ...others } = given as SandboxOptions & Record<string, unknown>;
  return isDeepStrictEqual(own, options?.parse({})) ? others : given;
}

/** The id of the sandbox that a call names by its id or its name. */
async function idOf(reference: string): Promise<string> {
  const id = isLive(reference) ? reference : await findSandboxId(reference);
  if (id !== undefined) return id;
  throw new SandboxError("not_found", `No kept sandbox with the id or name "${reference}"`);
}

function assertBackend({ name }: Backend, id: string, made: string | undefined): void {
  if (made === undefined || made === name) return;
  throw new SandboxError("invalid_argument", `Sandbox "${id}" belongs to the backend ${made}`, {
    hint: "omit backend: the id is enough",
  });
}

interface Opened {
  readonly driver: Driver;
  readonly entry: OpenEntry;
  /** Including everything that the record of a kept sandbox restores. */
  readonly opts: SandboxOptions;
  readonly isNew: boolean;
}

async function create(backend: Backend, wanted: SandboxOptions): Promise<Opened> {
  const snapshot = wanted.snapshot === undefined ? undefined : await findSnapshotRecord(wanted.snapshot);
  const given = snapshot === undefined ? wanted : startOptions(backend, wanted, snapshot);
  const image = given.image ?? (snapshot === undefined ? backend.defaultImage : undefined);
  const allowed = await underPolicy(backend, { ...given, ...(image !== undefined && { image }) });
  const none = backend.capabilities(given).network.includes("none") ? "none" : "full";
  const asked: SandboxOptions = { ...allowed, network: allowed.network ?? backend.defaultNetwork ?? none };
  if (given.workDir !== undefined) asked.workDir = posix.resolve(given.workDir);
  checkParsed(backend, asked);
  const opts = backend.resolveOptions?.(asked) ?? asked;
  await reapAtStart(backend, opts);
  const { ttl, signal } = opts;
  const expiresAt = ttl === undefined ? undefined : isoTime(Date.now() + ttl);
  const entry = new OpenEntry(entryOptions(backend, opts, exposureOf(backend, opts)), { signal, snapshot, expiresAt });
  const make = (): Promise<Driver> => backend.create({ ...opts, signal: entry.signal }, entry);
  const driver = await entry.create(make, backend.startsFromSnapshots === true ? undefined : fillFromSnapshot);
  return { driver, entry, opts, isNew: true };
}

async function reopen(backend: Backend, id: string, given: SandboxOptions): Promise<Opened> {
  await reapAtStart(backend, given);
  await refuseExpired(backend, id);
  const record = await openKeptRecord(id);
  try {
    assertBackend(backend, id, record.backend);
    const rules = rulesOfRecord(record);
    // The plan of an older version holds them until a new one replaces it.
    if (record.rules === undefined) await updateRecord(id, { rules });
    const keepsAll = record.keepsAll === true || given.keep === "all";
    // What was kept with everything stays so: nothing of it is dropped because a later call does not repeat it.
    const keep = given.keep === false ? false : keepsAll ? "all" : true;
    const opts = { ...reopenOptions(given, rules, record), id, keep } as const;
    await assertStillAllowed(backend, opts, { ...record, exposure: rules.exposure });
    // Secrets that are restored were checked. Those that the network does not lead to any more are of no use, and of no harm.
    checkParsed(backend, given.secrets === undefined ? { ...opts, secrets: {} } : opts);
    if (backend.reopen === undefined)
      throw new SandboxError("unsupported", `The ${backend.name} backend can't reopen sandboxes`);
    await sweepScratch(id);
    const start = { id, signal: opts.signal, expiresAt: record.expiresAt };
    const entry = new OpenEntry({ ...entryOptions(backend, opts, rules.exposure), keepsAll }, start);
    await rememberCall(record, opts, keepsAll, entry);
    const driver = await backend.reopen(record.reopen, { ...opts, signal: entry.signal }, entry);
    entry.reopened(driver, record.reopen);
    return { driver, entry, opts, isNew: false };
  } catch (error) {
    await updateRecord(id, { owner: undefined });
    throw error;
  }
}

/** Records what this opening changed, and warns of variables that it lacks. */
async function rememberCall(
  record: SandboxRecord,
  opts: SandboxOptions,
  keepsAll: boolean,
  entry: OpenEntry,
): Promise<void> {
  const missing = missingVariables(record, opts);
  if (missing.length > 0) {
    entry.warn(
      `the sandbox was opened with ${missing.join(", ")} before, and this call does not set it: give env again`,
    );
  }
  const envNames = Object.keys(opts.env ?? {}).sort();
  const patch = {
    ...(opts.env !== undefined && !isDeepStrictEqual(envNames, record.envNames ?? []) && { envNames }),
    ...(keepsAll && record.keepsAll !== true && { keepsAll }),
  };
  if (Object.keys(patch).length > 0) await updateRecord(record.id, patch);
}

function entryOptions(
  backend: Backend,
  opts: SandboxOptions,
  exposure: Exposure | undefined,
): ConstructorParameters<typeof OpenEntry>[0] {
  const { operationTimeout = DEFAULT_OPERATION_TIMEOUT, keep = false, name, labels = {}, env = {}, onEvent } = opts;
  return {
    backend,
    operationTimeout,
    name,
    labels,
    keep: keep !== false,
    keepsAll: keep === "all",
    envNames: Object.keys(env).sort(),
    rules: rulesOf(opts, exposure),
    assertAllowed: ({ createdAt, expiresAt, network }) =>
      assertStillAllowed(
        backend,
        { ...opts, network },
        { createdAt, exposure, ...(expiresAt !== undefined && { expiresAt }) },
      ),
    made: name === undefined ? undefined : madeOf(opts),
    onProgress:
      onEvent &&
      ((id, message) =>
        createEmit({ id, backend: backend.name }, secretsOf(backend, opts), onEvent)("progress", message)),
  };
}

/** The options, with those of the backend as its own schema returns them. */
function ownOptions(backend: Backend, called: SandboxOptions): SandboxOptions {
  const { name } = backend;
  const opts = withAbsoluteAudit(called);
  const given = (opts as Record<string, unknown>)[name];
  if (backend.options !== undefined) return { ...opts, [name]: backend.options.parse(given ?? {}) };
  if (given === undefined || Object.keys(given as object).length === 0) return opts;
  throw new SandboxError(
    "invalid_argument",
    `The ${name} backend has no options of its own: ${Object.keys(given as object).join(", ")}`,
  );
}

/** Errors from a service may repeat the request. */
function secretsOf(backend: Backend, opts: SandboxOptions): Parameters<typeof redactError>[1] {
  const names = [...(backend.credentials ?? []).flat(), "GITHUB_TOKEN"];
  const env = Object.fromEntries(names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
  const given: readonly unknown[] = [...(backend.secrets?.(opts) ?? []), opts.githubToken];
  // Anything shorter is found in every other text.
  const secrets = given.filter((secret) => typeof secret === "string").filter(({ length }) => length >= 8);
  return { env, secrets };
}
