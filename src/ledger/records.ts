import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Resource } from "../../contracts/backend.js";
import { SandboxError, toSandboxError } from "../../contracts/errors.js";
import { syncPath, writeFileAtomic, writeFileDurable } from "../machine/atomic-file.js";
import { failpoint } from "../machine/failpoint.js";
import { runtimeDir, sandboxesDir } from "../machine/home.js";
import { currentOwner, isTagDead, type Owner, ownerTag } from "../machine/owner.js";
import { removeOwnTree, removeTree } from "../machine/remove-tree.js";
import { assertSandboxId, isSandboxId } from "../machine/sandbox-id.js";
import { attempt } from "../util/attempt.js";
import { isoTime } from "../util/iso-time.js";
import { createLimit } from "../util/limit.js";
import { parseRecord, type RecordState, type SandboxRecord, type SandboxRules } from "./record.js";

/** The fields of a new record. */
export interface NewRecord {
  id: string;
  backend: string;
  workDir: string;
  name?: string | undefined;
  labels?: Readonly<Record<string, string>>;
  made?: Readonly<Record<string, string>>;
  reopen?: unknown;
  expiresAt?: string;
  /** What will be made first. Default: nothing. */
  resources?: readonly Resource[];
}

/** The fields of a record that can change. A field set to undefined is dropped. */
export interface RecordPatch {
  state?: RecordState;
  owner?: Owner | undefined;
  expiresAt?: string | undefined;
  workDir?: string;
  hostDir?: string | undefined;
  rules?: SandboxRules;
  envNames?: readonly string[];
  keepsAll?: boolean;
  reopen?: unknown;
  resources?: readonly Resource[];
}

/** One directory of the ledger: a record, or what is wrong with it. */
export type LedgerEntry = { id: string; record: SandboxRecord } | { id: string; damaged: string };

const RECORD = "record.json";
/** A file next to a record in state `creating`: its sandbox is ready. */
const READY = "ready";
const UNFINISHED = ".new-";
const DISCARDED = ".gone-";
const ABANDONED_AFTER = 3_600_000;
const turns = new Map<string, Promise<unknown>>();
/** The records of the sandboxes that this process has open, so that it can remove what it made even if a record is deleted. */
const remembered = new Map<string, SandboxRecord>();

/** Creates the record of a sandbox, owned by this process, before anything else of it exists. An id in use is `conflict`. */
export async function createRecord(fields: NewRecord): Promise<SandboxRecord> {
  const target = runtimeDir(fields.id);
  const owner = currentOwner();
  const createdAt = isoTime();
  const { resources = [], ...rest } = fields;
  const record = { version: 1, ...rest, state: "creating", owner, createdAt, resources } as SandboxRecord;
  const draft = join(sandboxesDir(), `${UNFINISHED}${fields.id}.${ownerTag()}.${randomBytes(6).toString("hex")}`);
  try {
    mkdirSync(draft, { mode: 0o700 });
    await writeFileDurable(join(draft, RECORD), serialize(record));
    renameSync(draft, target);
    // In parallel: on a journaling file system both end up in the same commit.
    await Promise.all([syncPath(target), syncPath(sandboxesDir())]);
    remembered.set(fields.id, record);
    return record;
  } catch (error) {
    await removeTree(draft).catch(() => undefined);
    const code = (error as NodeJS.ErrnoException).code;
    if (code !== "ENOTEMPTY" && code !== "EEXIST") throw toSandboxError(error, { operation: "ledger" });
    throw new SandboxError("conflict", `A sandbox with the id "${fields.id}" already exists`, { retryable: false });
  }
}

/** Adds resources to a record. Await it before you make them, so that a crash never leaves an unknown one. */
export async function addResource(id: string, ...resources: readonly Resource[]): Promise<void> {
  await change(id, (record) => ({ ...record, resources: [...record.resources, ...resources] }));
}

/** Removes resources from a record, once they are gone. One that is added at the same time stays. */
export async function dropResources(id: string, isGone: (resource: Resource) => boolean): Promise<void> {
  await change(id, (record) => ({ ...record, resources: record.resources.filter((each) => !isGone(each)) }));
}

/** Marks a sandbox as ready. The mark is not synced to disk: after a power loss, a sandbox that is not kept is removed anyway. */
export function markReady(id: string): void {
  try {
    writeFileSync(join(runtimeDir(id), READY), "", { mode: 0o600 });
  } catch (error) {
    throw toSandboxError(error, { operation: "ledger" });
  }
}

/** Changes fields of a record. */
export async function updateRecord(id: string, patch: RecordPatch): Promise<SandboxRecord> {
  return await change(id, (record) => ({ ...record, ...patch }) as SandboxRecord);
}

/** The record of a sandbox that this process has open, as it was last written; undefined if it has none with this id. */
export function rememberedRecord(id: string): SandboxRecord | undefined {
  return remembered.get(id);
}

/** The record of a sandbox; undefined if there is none, `tampered` if it can't be read. */
export async function readRecord(id: string): Promise<SandboxRecord | undefined> {
  const entry = await readEntry(id);
  if (entry === undefined || "record" in entry) return entry?.record;
  throw new SandboxError("tampered", `The record of sandbox "${id}" is damaged: ${entry.damaged}`, {
    operation: "ledger",
    hint: `Glovebox can't know what it made. Check ${runtimeDir(id)} and remove it by hand.`,
  });
}

/** All sandboxes in the ledger, including those with a damaged record. */
export async function listRecords(): Promise<LedgerEntry[]> {
  const names = (await readdir(sandboxesDir())).filter(isSandboxId).sort();
  // All at once, a large ledger would need more open files than a process may have.
  const inTurn = createLimit(64);
  const entries = await Promise.all(names.map((name) => inTurn(() => readEntry(name))));
  return entries.filter((entry) => entry !== undefined);
}

/** Removes a record with its runtime directory. No error if there is none. */
export async function removeRecord(id: string): Promise<void> {
  remembered.delete(id);
  const discarded = join(sandboxesDir(), `${DISCARDED}${id}.${randomBytes(6).toString("hex")}`);
  try {
    renameSync(runtimeDir(id), discarded);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
    throw toSandboxError(error, { operation: "ledger" });
  }
  await failpoint("removal.discarded");
  await removeOwnTree(discarded);
}

/** The directories next to the record of a sandbox. Those that are not removed earlier are removed with the record. */
export function runtimeDirectories(id: string): string[] {
  const folder = runtimeDir(id);
  const entries = attempt(() => readdirSync(folder, { withFileTypes: true })) ?? [];
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(folder, name));
}

/** Removes leftovers of a crash while a record was created or removed. */
export async function sweepLedger(): Promise<void> {
  const parent = sandboxesDir();
  for (const name of await readdir(parent)) {
    const path = join(parent, name);
    if (name.startsWith(DISCARDED) || (name.startsWith(UNFINISHED) && (await isAbandoned(path, name)))) {
      await removeTree(path);
    }
  }
}

async function isAbandoned(path: string, name: string): Promise<boolean> {
  if (isTagDead(name.split(".")[2] ?? "")) return true;
  const made = await stat(path).catch(() => undefined);
  return made !== undefined && Date.now() - made.mtimeMs > ABANDONED_AFTER;
}

async function readEntry(id: string): Promise<LedgerEntry | undefined> {
  assertSandboxId(id);
  try {
    // A small file of our own: a way through the thread pool for each step takes ten times as long, and many records are read.
    const parsed = parseRecord(readFileSync(join(runtimeDir(id), RECORD), "utf8"), id);
    if (typeof parsed === "string") return { id, damaged: parsed };
    const isReady = parsed.state === "creating" && existsSync(join(runtimeDir(id), READY));
    return { id, record: isReady ? { ...parsed, state: "ready" } : parsed };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") return { id, damaged: String(error) };
    const present = await stat(runtimeDir(id)).catch(() => undefined);
    return present === undefined ? undefined : { id, damaged: `${RECORD} is missing` };
  }
}

/** Serialises the changes of one record; only its owner makes any. */
async function change(id: string, edit: (record: SandboxRecord) => SandboxRecord): Promise<SandboxRecord> {
  const work = async (): Promise<SandboxRecord> => {
    const record = await readRecord(id);
    if (record === undefined) {
      throw new SandboxError("not_found", `No sandbox with the id "${id}"`, { operation: "ledger" });
    }
    const edited = edit(record);
    try {
      await writeFileAtomic(join(runtimeDir(id), RECORD), serialize(edited));
    } catch (error) {
      throw toSandboxError(error, { operation: "ledger" });
    }
    if (edited.owner === undefined) remembered.delete(id);
    else remembered.set(id, edited);
    return edited;
  };
  const turn = (turns.get(id) ?? Promise.resolve()).then(work, work);
  turns.set(id, turn);
  try {
    return await turn;
  } finally {
    if (turns.get(id) === turn) turns.delete(id);
  }
}

function serialize(record: SandboxRecord): string {
  return `${JSON.stringify(record, undefined, 2)}\n`;
}
