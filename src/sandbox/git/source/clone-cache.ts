import { createHash, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, rename, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readSnapshotRecords } from "../../../ledger.js";
import { type CacheEntry, sizeOf, trimEntries } from "../../../machine/cache-entries.js";
import { privateSubdirectory } from "../../../machine/home.js";
import { withLock } from "../../../machine/lock.js";
import { isTagDead, ownerTag } from "../../../machine/owner.js";
import { removeTree } from "../../../machine/remove-tree.js";
import { writeGitDirectory } from "../repository.js";
import { isRecorded, removeBasesOf } from "./base-cache.js";
import { fetchAll } from "./fetch-clone.js";
import type { SourceUrl } from "./source-url.js";

/** Limit for all clones together. The least recently used are removed first. */
const MAX_BYTES = 20 * 1024 ** 3;
/** Milliseconds for a new user of a clone to write its record. */
const GRACE = 60_000;
const LOCK_TIMEOUT = 600_000;
/** A file whose time says when the remote was last asked. */
const FETCHED = "glovebox-fetched";

/** How to reach a remote. */
export interface CloneOptions {
  token?: string | undefined;
  signal?: AbortSignal | undefined;
}

/** The directory of a source's clone, whether it exists or not. */
export function cloneDirOf({ url }: SourceUrl): string {
  return join(clonesDir(), createHash("sha256").update(url).digest("hex").slice(0, 32));
}

/** Opens the clone of a source, with what the remote has now. Processes that wait for another one's fetch don't fetch again. */
export async function openClone(source: SourceUrl, opts: CloneOptions = {}): Promise<string> {
  const dir = cloneDirOf(source);
  const askedAt = Date.now();
  const open = async (): Promise<void> => {
    await sweepDrafts();
    const fetchedAt = (await stat(join(dir, FETCHED)).catch(() => undefined))?.mtimeMs ?? 0;
    if (fetchedAt > askedAt) return;
    await withScratch(async (scratch) => {
      if (existsSync(dir)) await fetchAll(source, dir, scratch, opts);
      else await makeClone(source, dir, scratch, opts);
    });
    await writeFile(join(dir, FETCHED), source.url, { mode: 0o600 });
  };
  await withLock(lockOf(dir), open, { timeout: LOCK_TIMEOUT, signal: opts.signal });
  const now = new Date();
  await utimes(dir, now, now);
  return dir;
}

async function makeClone(source: SourceUrl, dir: string, scratch: string, opts: CloneOptions): Promise<void> {
  const draft = join(scratch, "clone");
  await fetchAll(source, draft, scratch, opts, async (objectFormat) => {
    const config = {
      core: { bare: "true" },
      gc: { auto: "0" },
      'remote "origin"': { url: source.url, fetch: "+refs/heads/*:refs/remotes/origin/*" },
    };
    await mkdir(draft, { mode: 0o700 });
    await writeGitDirectory(draft, { head: "refs/heads/none", config, objectFormat });
  });
  await trimEntries(await listClones(), MAX_BYTES);
  await rename(draft, dir);
}

/** Every clone in the cache. */
export async function listClones(): Promise<CacheEntry[]> {
  const entries: CacheEntry[] = [];
  for (const name of await readdir(clonesDir())) {
    if (name.startsWith(".")) continue;
    const path = join(clonesDir(), name);
    const found = await stat(path).catch(() => undefined);
    if (found === undefined) continue;
    entries.push({ path, usedAt: found.mtimeMs, bytes: await sizeOf(path), remove: () => removeClone(path) });
  }
  return entries;
}

async function removeClone(dir: string): Promise<boolean> {
  return await withLock(lockOf(dir), async () => {
    const found = await stat(dir).catch(() => undefined);
    if (found === undefined || Date.now() - found.mtimeMs < GRACE || (await isUsed(dir))) return false;
    // Bases borrow its objects.
    if (!(await removeBasesOf(dir))) return false;
    return await withScratch(async (scratch) => {
      await rename(dir, join(scratch, "clone"));
      return true;
    });
  });
}

/** Whether a sandbox uses a clone, or a snapshot is in it. */
async function isUsed(dir: string): Promise<boolean> {
  return (await isRecorded("clone", dir)) || (await readSnapshotRecords()).some(({ gitDir }) => gitDir === dir);
}

async function withScratch<T>(use: (dir: string) => Promise<T>): Promise<T> {
  const dir = join(clonesDir(), `.new.${ownerTag()}.${randomBytes(6).toString("hex")}`);
  try {
    await mkdir(dir, { mode: 0o700 });
    return await use(dir);
  } finally {
    await removeTree(dir);
  }
}

/** Removes what dead processes were making or removing. */
async function sweepDrafts(): Promise<void> {
  for (const name of await readdir(clonesDir())) {
    if (name.startsWith(".new.") && isTagDead(name.split(".")[2] ?? "")) await removeTree(join(clonesDir(), name));
  }
}

function clonesDir(): string {
  return privateSubdirectory("clones");
}

function lockOf(dir: string): string {
  return `clone:${dir}`;
}
