import type { Backend } from "../../contracts/backend.js";
import type { Driver } from "../../contracts/driver.js";
import { SandboxError, toSandboxError } from "../../contracts/errors.js";
import { DEFAULT_OPERATION_TIMEOUT, type Sandbox, type SandboxOptions } from "../../contracts/sandbox.js";
import { openKeptRecord, updateRecord } from "../ledger.js";
import { assertCapabilities } from "./capabilities.js";
import { sweepScratch } from "./git.js";
import { reopenOptions, rulesOf, rulesOfRecord } from "./lifecycle/kept-options.js";
import { closeDriver, OpenEntry } from "./lifecycle/open-entry.js";
import { openInTime } from "./lifecycle/open-in-time.js";
import { validateSandboxOptions } from "./lifecycle/options.js";
import { reapAtStart } from "./lifecycle/reap-records.js";
import { createSandbox, redactError } from "./portable.js";

export { closeDriver } from "./lifecycle/open-entry.js";
export {
  isHeld,
  listSandboxes as listRecorded,
  type ReapOptions,
  type ReapReport,
  reapRecords,
  type SandboxInfo,
} from "./lifecycle/reap-records.js";

/** Opens a sandbox of a backend that is already loaded. */
export async function openWith(backend: Backend, opts: SandboxOptions = {}): Promise<Sandbox> {
  const { name } = backend;
  validateSandboxOptions(opts, [name]);
  try {
    return await openInTime(name, opts, async (inTime) => {
      const own = ownOptions(backend, inTime);
      const opened = own.id === undefined ? await create(backend, own) : await reopen(backend, own.id, own);
      const sandbox = createSandbox(opened.driver, opened.opts, closeDriver);
      opened.entry.deliverWarnings();
      return sandbox;
    });
  } catch (error) {
    throw redactError(toSandboxError(error, { backend: name, operation: "open" }), secretsOf(backend, opts));
  }
}

/** Throws for options that a backend does not accept or can never enforce, as opening a sandbox would. */
export function checkPossible(backend: Backend, opts: SandboxOptions): void {
  checkParsed(backend, ownOptions(backend, opts));
}

/** As `checkPossible`, for options that the backend's schema has returned: it may not take them a second time. */
function checkParsed(backend: Backend, own: SandboxOptions): void {
  backend.check?.(own);
  const { isolation = "required" } = own;
  assertCapabilities({ ...own, isolation }, backend.capabilities(own), backend.name);
  if (own.keep === true && backend.reopen === undefined) {
    throw new SandboxError("unsupported", `The ${backend.name} backend can't keep sandboxes`);
  }
}

interface Opened {
  readonly driver: Driver;
  readonly entry: OpenEntry;
  /** Including everything that the record of a kept sandbox restores. */
  readonly opts: SandboxOptions;
}

async function create(backend: Backend, given: SandboxOptions): Promise<Opened> {
  const none = backend.capabilities(given).network.includes("none") ? "none" : "full";
  const asked = { ...given, network: given.network ?? backend.defaultNetwork ?? none };
  checkParsed(backend, asked);
  const opts = backend.resolveOptions?.(asked) ?? asked;
  await reapAtStart(backend, opts);
  const entry = new OpenEntry(entryOptions(backend, opts, opts.keep === true), opts);
  const driver = await entry.create(() => backend.create({ ...opts, signal: entry.signal }, entry));
  return { driver, entry, opts };
}

async function reopen(backend: Backend, id: string, given: SandboxOptions): Promise<Opened> {
  await reapAtStart(backend, given);
  const record = await openKeptRecord(id);
  try {
    if (record.backend !== backend.name) {
      throw new SandboxError("invalid_argument", `Sandbox "${id}" belongs to the backend ${record.backend}`, {
        hint: "omit backend: the id is enough",
      });
    }
    const rules = rulesOfRecord(record);
    // The plan of an older version holds them until a new one replaces it.
    if (record.rules === undefined) await updateRecord(id, { rules });
    const opts = { ...reopenOptions(given, rules), keep: given.keep ?? true };
    checkParsed(backend, opts);
    if (backend.reopen === undefined)
      throw new SandboxError("unsupported", `The ${backend.name} backend can't reopen sandboxes`);
    await sweepScratch(id);
    const entry = new OpenEntry(entryOptions(backend, opts, opts.keep), opts);
    const driver = await backend.reopen(record.reopen, { ...opts, signal: entry.signal }, entry);
    entry.reopened(driver, record.reopen);
    return { driver, entry, opts };
  } catch (error) {
    await updateRecord(id, { owner: undefined });
    throw error;
  }
}

function entryOptions(
  backend: Backend,
  opts: SandboxOptions,
  keep: boolean,
): ConstructorParameters<typeof OpenEntry>[0] {
  const { operationTimeout = DEFAULT_OPERATION_TIMEOUT } = opts;
  return { backend, keep, operationTimeout, rules: rulesOf(opts) };
}

/** The options, with those of the backend as its own schema returns them. */
function ownOptions(backend: Backend, opts: SandboxOptions): SandboxOptions {
  const { name } = backend;
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
