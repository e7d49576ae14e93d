import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { readdir, readFile, rename, rmdir, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import type { Resource } from "../../contracts/backend.js";
import { SandboxError, toSandboxError } from "../../contracts/errors.js";
import { syncPath, writeFileAtomic, writeFileDurable } from "../machine/atomic-file.js";
import { failpoint } from "../machine/failpoint.js";
import { runtimeDir, sandboxesDir } from "../machine/home.js";
import { currentOwner, isTagDead, type Owner, ownerTag } from "../machine/owner.js";
import { removeTree } from "../machine/remove-tree.js";
import { assertSandboxId, isSandboxId } from "../machine/sandbox-id.js";
import { parseRecord, type RecordState, type SandboxRecord, type SandboxRules } from "./record.js";

/** What a new record says. */
export interface NewRecord {
  id: string;
  backend: string;
  workDir: string;
  reopen?: unknown;
  expiresAt?: string;
  /** What is going to be made first. Default nothing. */
  resources?: readonly Resource[];
}

/** What may change in a record; a field that is given as undefined is dropped. */
export interface RecordPatch {
  state?: RecordState;
  owner?: Owner | undefined;
  expiresAt?: string | undefined;
  workDir?: string;
  rules?: SandboxRules;
  reopen?: unknown;
  resources?: readonly Resource[];
}

/** One directory of the ledger: a record, or what is wrong with it. */
export type LedgerEntry = { id: string; record: SandboxRecord } | { id: string; damaged: string };

const RECORD = "record.json";
/** Beside a record that says `creating`: the sandbox is there. */
const READY = "ready";
const UNFINISHED = ".new-";
const DISCARDED = ".gone-";
const ABANDONED_AFTER = 3_600_000;
const turns = new Map<string, Promise<unknown>>();
/** The records of sandboxes that this process has open: what it made is known also when somebody deletes the record. */
const remembered = new Map<string, SandboxRecord>();

/** Enters a sandbox into the ledger, owned by this process, before anything of it exists. An id in use is `conflict`. */
export async function createRecord(fields: NewRecord): Promise<SandboxRecord> {
  const target = runtimeDir(fields.id);
  const owner = currentOwner();
  const createdAt = new Date().toISOString();
  const { resources = [], ...rest } = fields;
  const record: SandboxRecord = { version: 1, ...rest, state: "creating", owner, createdAt, resources };
  const draft = join(sandboxesDir(), `${UNFINISHED}${fields.id}.${ownerTag()}.${randomBytes(6).toString("hex")}`);
  try {
    mkdirSync(draft, { mode: 0o700 });
    await writeFileDurable(join(draft, RECORD), serialize(record));
    renameSync(draft, target);
    // Both at once: where a file system writes its journal for one, the other is in it.
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

/** Notes resources. To be awaited before they are made, so that a crash can never leave one unknown. */
export async function addResource(id: string, ...resources: readonly Resource[]): Promise<void> {
  await change(id, (record) => ({ ...record, resources: [...record.resources, ...resources] }));
}

/**
 * Says of a sandbox that it is there. Nothing is lost with this mark, so it is not forced to the disk: whatever a power
 * loss leaves of a sandbox that was not kept is taken away.
 */
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

/** The record of a sandbox that this process has open, as it was last written; undefined when it has none of this id. */
export function rememberedRecord(id: string): SandboxRecord | undefined {
  return remembered.get(id);
}

/** The record of a sandbox; undefined when there is none, `tampered` when it cannot be read. */
export async function readRecord(id: string): Promise<SandboxRecord | undefined> {
  const entry = await readEntry(id);
  if (entry === undefined || "record" in entry) return entry?.record;
  throw new SandboxError("tampered", `The record of sandbox "${id}" is damaged: ${entry.damaged}`, {
    operation: "ledger",
    hint: `What it had made is unknown. Look into ${runtimeDir(id)} and remove it by hand.`,
  });
}

/** Every sandbox that the ledger knows, also the ones whose record is damaged. */
export async function listRecords(): Promise<LedgerEntry[]> {
  const names = (await readdir(sandboxesDir())).filter(isSandboxId).sort();
  const entries = await Promise.all(names.map(readEntry));
  return entries.filter((entry) => entry !== undefined);
}

/** Strikes a sandbox out, with its runtime directory. One that is not there is no error. */
export async function removeRecord(id: string): Promise<void> {
  remembered.delete(id);
  const discarded = join(sandboxesDir(), `${DISCARDED}${id}.${randomBytes(6).toString("hex")}`);
  try {
    await rename(runtimeDir(id), discarded);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
    throw toSandboxError(error, { operation: "ledger" });
  }
  await failpoint("removal.discarded");
  // Mostly there is nothing but files in it; then no program has to be started for it.
  const entries = await readdir(discarded, { withFileTypes: true });
  for (const entry of entries) if (entry.isFile()) await unlink(join(discarded, entry.name)).catch(() => undefined);
  await rmdir(discarded).catch(() => removeTree(discarded));
}

/** The directories beside the record of a sandbox. What of them is not taken away before goes with the record. */
export async function runtimeDirectories(id: string): Promise<string[]> {
  const entries = await readdir(runtimeDir(id), { withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(runtimeDir(id), name));
}

/** Removes what a crash left of a record that was being made or struck out. */
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
    const parsed = parseRecord(await readFile(join(runtimeDir(id), RECORD), "utf8"), id);
    if (typeof parsed === "string") return { id, damaged: parsed };
    const isReady = parsed.state === "creating" && existsSync(join(runtimeDir(id), READY));
    return { id, record: isReady ? { ...parsed, state: "ready" } : parsed };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") return { id, damaged: String(error) };
    const present = await stat(runtimeDir(id)).catch(() => undefined);
    return present === undefined ? undefined : { id, damaged: `${RECORD} is missing` };
  }
}

/** Changes of one record follow each other; its owner is the only process that makes them. */
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
