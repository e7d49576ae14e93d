import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { readdir, rename, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { listRecords } from "../../../ledger.js";
import { type CacheEntry, sizeOf } from "../../../machine/cache-entries.js";
import { privateSubdirectory, runtimeDir } from "../../../machine/home.js";
import { isOwnerAlive } from "../../../machine/owner.js";
import { removeTree } from "../../../machine/remove-tree.js";
import { linkShared } from "./link-shared.js";
import { draftIn } from "./prepared-etc.js";

/** A file in a runtime directory that names the prepared `/etc` of the sandbox. */
const ETC_FILE = "etc";
/** How long a prepared `/etc` that was just requested may be in no such file, in milliseconds. */
const GRACE = 60_000;
const FORGOTTEN = 24 * 3_600_000;

/** Records which prepared `/etc` a sandbox uses, so that it stays while the sandbox runs. All that use it share one file. */
export function recordEtc(id: string, path: string): void {
  const own = join(runtimeDir(id), ETC_FILE);
  rmSync(own, { force: true });
  linkShared(noteOf(path), own, (file) => writeFileSync(file, path, { mode: 0o600 }));
}

/** The file that sandboxes on a prepared `/etc` share. */
function noteOf(path: string): string {
  return join(dirname(path), `.path-${basename(path)}`);
}

/** All prepared `/etc` directories. */
export async function listEtc(): Promise<CacheEntry[]> {
  const parent = privateSubdirectory("etc");
  const entries: CacheEntry[] = [];
  for (const name of await readdir(parent)) {
    if (name.startsWith(".")) continue;
    const path = join(parent, name);
    const found = await stat(path).catch(() => undefined);
    if (found === undefined) continue;
    entries.push({ path, usedAt: found.mtimeMs, bytes: await sizeOf(path), remove: () => removeEtc(parent, path) });
  }
  return entries;
}

/** Removes those that nothing has used for a day: each change of the host's files leaves one behind. */
export async function trimEtc(): Promise<void> {
  const parent = privateSubdirectory("etc");
  for (const name of await readdir(parent)) {
    const path = join(parent, name);
    const age = Date.now() - ((await stat(path).catch(() => undefined))?.mtimeMs ?? Date.now());
    if (!name.startsWith(".") && age > FORGOTTEN) await removeEtc(parent, path);
  }
}

async function removeEtc(parent: string, path: string): Promise<boolean> {
  if ((await isFresh(path)) || (await isUsed(path))) return false;
  const gone = draftIn(parent);
  await rename(path, gone);
  if (await isFresh(gone)) {
    // It was requested meanwhile. If a new one is already there, that one will do.
    const isBack = await rename(gone, path).then(
      () => true,
      () => false,
    );
    if (isBack) return false;
  }
  rmSync(noteOf(path), { force: true });
  await removeTree(gone);
  return true;
}

async function isFresh(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found === undefined || Date.now() - found.mtimeMs < GRACE;
}

async function isUsed(path: string): Promise<boolean> {
  return (await listRecords()).some((entry) => {
    const owner = "record" in entry ? entry.record.owner : undefined;
    // A sandbox with a damaged record may be open.
    if ("record" in entry && (owner === undefined || isOwnerAlive(owner) === "dead")) return false;
    return readEtcPath(entry.id) === path;
  });
}

function readEtcPath(id: string): string | undefined {
  try {
    return readFileSync(join(runtimeDir(id), ETC_FILE), "utf8");
  } catch {
    return undefined;
  }
}
