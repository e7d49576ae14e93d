import { createHash, randomBytes } from "node:crypto";
import { existsSync, utimesSync } from "node:fs";
import { mkdir, readdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { SandboxError } from "../../../../contracts/errors.js";
import { addResource, listRecords } from "../../../ledger.js";
import { type CacheEntry, sizeOf, trimEntries } from "../../../machine/cache-entries.js";
import { failpoint } from "../../../machine/failpoint.js";
import { privateSubdirectory } from "../../../machine/home.js";
import { isLocked, withLock } from "../../../machine/lock.js";
import { removeTree } from "../../../machine/remove-tree.js";
import { explainGitFailure } from "../host.js";
import {
  mayHaveRef,
  type Repository,
  removeStaleRefLock,
  repositoryExists,
  repositoryGit,
  withRepositoryLock,
} from "../repository.js";
import { giveIndex, writeBorrowingGit } from "../sandbox-git.js";
import { checkOut } from "./checkout.js";

/** A checkout that never changes. Any number of sandboxes put their own layer on it. */
export interface Base {
  /** The entry in the cache. A record that names it keeps it from being removed. */
  dir: string;
  tree: string;
  /** A borrowing git. */
  git: string;
  index: string;
}

/** A file with the path of the git directory that an entry was made from. */
const SOURCE = "source";
const ABANDONED_AFTER = 24 * 3_600_000;
/** Limit for all bases together. The least recently used are removed first. */
const MAX_BYTES = 20 * 1024 ** 3;
const making = new Map<string, Promise<void>>();

/** The directory of a commit's base, whether it exists or not. Add it to the ledger before `openBase`, so that it isn't removed. */
export function baseDirOf(repository: Repository, sha: string): string {
  const { filters = [] } = repository;
  const mark = createHash("sha256").update(filters.join("\n")).digest("hex").slice(0, 8);
  return join(basesDirOf(repository.gitDir), filters.length === 0 ? sha : `${sha}-${mark}`);
}

/** The commit of a base. */
function shaOf(dir: string): string {
  return basename(dir).split("-")[0] ?? "";
}

function basesDirOf(gitDir: string): string {
  return join(privateSubdirectory("bases"), createHash("sha256").update(gitDir).digest("hex").slice(0, 16));
}

/** Opens the base of a commit, which one process makes while others wait. `record` is the id of the ledger record that names the draft. */
export async function openBase(repository: Repository, sha: string, record: string): Promise<Base> {
  const dir = baseDirOf(repository, sha);
  const lock = `base:${dir}`;
  // The caller's record names it already. Whoever removes a base takes the lock first, then looks at the records.
  if (!existsSync(dir) || isLocked(lock)) {
    const made = making.get(dir) ?? withLock(lock, () => makeBase(repository, sha, dir, record));
    making.set(dir, made);
    await made.finally(() => making.delete(dir));
  }
  const now = new Date();
  utimesSync(dir, now, now);
  return { dir, tree: join(dir, "tree"), git: join(dir, "git"), index: join(dir, "index", "index") };
}

async function makeBase(repository: Repository, sha: string, dir: string, record: string): Promise<void> {
  const draft = `${dir}.${randomBytes(4).toString("hex")}.new`;
  if (!existsSync(dir)) {
    await addResource(record, { kind: "base-draft", repo: repository.gitDir, dir, draft });
    await mkdir(draft, { recursive: true, mode: 0o700 });
    try {
      await checkOut(repository, sha, { tree: join(draft, "tree"), index: join(draft, "index") });
      await failpoint("base.drafted");
      // Keeps the objects as long as the base exists, whatever happens to the branches.
      await repositoryGit(["update-ref", holdingRef(sha), sha], repository.gitDir);
      await failpoint("base.held");
      await writeBorrowingGit({ repository, baseSha: sha, dir: join(draft, "git") });
      await giveIndex(join(draft, "git"), join(draft, "index", "index"));
      await writeFile(join(draft, SOURCE), repository.gitDir, { mode: 0o600 });
      await trimEntries(await listBases(), MAX_BYTES);
      await rename(draft, dir);
      await failpoint("base.renamed");
    } catch (error) {
      await removeTree(draft);
      throw error;
    }
  }
}

/** Every base in the cache. */
export async function listBases(): Promise<CacheEntry[]> {
  const root = privateSubdirectory("bases");
  const entries: CacheEntry[] = [];
  for (const repository of await readdir(root)) {
    for (const name of await readdir(join(root, repository))) {
      // A draft. An old one was left by a dead process and counts like any other.
      if (name.endsWith(".new") && !(await isOld(join(root, repository, name)))) continue;
      const path = join(root, repository, name);
      const found = await stat(path);
      entries.push({ path, usedAt: found.mtimeMs, bytes: await sizeOf(path), remove: () => removeUnused(path) });
    }
  }
  return entries;
}

async function removeUnused(dir: string): Promise<boolean> {
  return await withLock(`base:${dir}`, async () => {
    if (await isRecorded("base", dir)) return false;
    await removeBase(dir);
    return true;
  });
}

/** Removes the bases of a repository that is about to be removed; false when one is in use. */
export async function removeBasesOf(gitDir: string): Promise<boolean> {
  const dir = basesDirOf(gitDir);
  for (const name of await readdir(dir).catch(() => [])) if (!(await removeUnused(join(dir, name)))) return false;
  return true;
}

/** Whether the record of a sandbox names a directory of a cache. */
export async function isRecorded(kind: "base" | "clone", path: string): Promise<boolean> {
  const records = (await listRecords()).flatMap((entry) => ("record" in entry ? [entry.record] : []));
  return records.some(({ resources }) => resources.some((each) => each.kind === kind && each["path"] === path));
}

/** Removes what is left of an unfinished base; a finished one stays. Idempotent. */
export async function removeUnfinishedBase(target: { repo: string; dir: string; draft: string }): Promise<void> {
  const { repo, dir, draft } = target;
  if (dirname(dirname(dir)) !== privateSubdirectory("bases") || dirname(draft) !== dirname(dir)) {
    throw new SandboxError("tampered", `${JSON.stringify(dir)} is not in the cache`);
  }
  await removeTree(draft);
  if (existsSync(dir)) return;
  await withLock(`base:${dir}`, async () => {
    if (!existsSync(dir) && (await repositoryExists(repo))) await removeHoldingRef(repo, shaOf(dir));
  });
}

async function removeHoldingRef(gitDir: string, sha: string): Promise<void> {
  const ref = holdingRef(sha);
  if (!mayHaveRef(gitDir, ref)) return;
  await withRepositoryLock(gitDir, async () => {
    await removeStaleRefLock(gitDir, ref);
    await repositoryGit(["update-ref", "-d", ref], gitDir).catch((error: unknown) => {
      // A git that doesn't know the format has not written the ref either.
      if ((explainGitFailure(error) as SandboxError).code !== "unsupported") throw error;
    });
  });
}

async function removeBase(dir: string): Promise<void> {
  const gitDir = await readFile(join(dir, SOURCE), "utf8").catch(() => undefined);
  // The repository may be gone, and its ref with it.
  if (gitDir !== undefined && (await repositoryExists(gitDir))) await removeHoldingRef(gitDir, shaOf(dir));
  await removeTree(dir);
}

function holdingRef(sha: string): string {
  return `refs/glovebox/bases/${sha}`;
}

async function isOld(dir: string): Promise<boolean> {
  const found = await stat(dir).catch(() => undefined);
  return found !== undefined && Date.now() - found.mtimeMs > ABANDONED_AFTER;
}
