import { constants } from "node:fs";
import { open, rm } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { SandboxError } from "../errors.js";
import { privateSubdirectory } from "../home.js";
import { withLock } from "../lock.js";
import { removeTree } from "../remove-tree.js";
import { assertSandboxId } from "../sandbox-id.js";
import { readCheckoutSettings, writeGitDirectory } from "./git-directory.js";
import { gitError, hostGit, runHostGit } from "./host-git.js";
import { commitInJail, type RunJailedGit } from "./jailed-commit.js";
import { inRepository, type Repository } from "./repository.js";
import { checkSnapshot } from "./snapshot-policy.js";
import { repositoryLock } from "./worktree.js";

/** What `createSnapshot` needs. */
export interface SnapshotOptions {
  sandboxId: string;
  /** Path of the store, which is made for this one snapshot and removed after it. */
  store: string;
  runJailedGit: RunJailedGit;
  /** Where the snapshot goes. Absent: to a repository below the home, for a sandbox that has no source. */
  source?: { repository: Repository; baseSha: string };
  /** Bytes that a snapshot may bring. Default 4 GiB. */
  maxBytes?: number;
}

/** A snapshot that is safely stored. */
export interface Snapshot {
  /** The ref that holds it: `refs/glovebox/<sandbox>/<n>`. */
  readonly id: string;
  readonly commit: string;
  /** The git directory that it is in. */
  readonly gitDir: string;
  /** What is not in it, or leads out of it. */
  readonly warnings: readonly string[];
}

const MAX_BYTES = 4 * 1024 ** 3;
/** As many objects as `git fetch` would store one by one. */
const UNPACK_LIMIT = 100;

/**
 * Saves the files of a sandbox as a commit.
 *
 * Everything that walks the sandbox's tree runs in the jail, since a nested repository there can make git execute
 * programs. So the store counts as hostile too once git has run: the host takes one pack out of it, never looks at it with
 * git, and lets git check every object on the way in.
 */
export async function createSnapshot(opts: SnapshotOptions): Promise<Snapshot> {
  const { sandboxId, store, source } = opts;
  assertSandboxId(sandboxId);
  const pack = `${store}.pack`;
  try {
    await prepareStore(store, source?.repository);
    const made = await commitInJail(opts.runJailedGit, sandboxId, source?.baseSha);
    await takeOut(join(store, made.pack), pack, opts.maxBytes ?? MAX_BYTES);
    const gitDir = source?.repository.gitDir ?? join(privateSubdirectory("snapshots"), `${sandboxId}.git`);
    const { commit, nested } = made;
    return await withLock(repositoryLock(gitDir), async () => {
      if (source === undefined) await prepareOwnRepository(gitDir);
      await importPack(gitDir, pack);
      await checkStory(gitDir, commit, source?.baseSha);
      const warnings = await checkSnapshot(gitDir, commit, source?.baseSha);
      const id = await createRef(gitDir, sandboxId, commit);
      const lost = nested.map(
        (path) => `${JSON.stringify(path)} is a repository of its own and is not in the snapshot`,
      );
      return { id, commit, gitDir, warnings: [...lost, ...warnings] };
    });
  } finally {
    await rm(pack, { force: true });
    await removeTree(store);
  }
}

async function prepareStore(store: string, repository: Repository | undefined): Promise<void> {
  await removeTree(store);
  const settings = repository === undefined ? {} : await readCheckoutSettings(repository);
  const config = { core: { bare: "false", ...settings }, gc: { auto: "0" }, maintenance: { auto: "false" } };
  await writeGitDirectory(store, { head: "refs/heads/snapshot", config, repository });
}

/** Copies the pack to where the jail cannot write. Whatever lies in the store may have been put there from inside. */
async function takeOut(from: string, to: string, maxBytes: number): Promise<void> {
  const source = await open(from, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch((error) => {
    throw new SandboxError("tampered", "The jail left no pack", { cause: error });
  });
  try {
    const { size } = await source.stat().then((found) => (found.isFile() ? found : { size: 0 }));
    if (size === 0) throw new SandboxError("tampered", "The pack of the jail is empty or not a regular file");
    if (size > maxBytes) throw new SandboxError("limit_exceeded", `The snapshot has ${size} bytes, over ${maxBytes}`);
    await rm(to, { force: true });
    const target = await open(to, "wx", 0o600);
    await pipeline(source.createReadStream({ end: size - 1, autoClose: false }), target.createWriteStream());
  } finally {
    await source.close();
  }
}

/**
 * Stores the objects of a pack, each one checked. Not by `git fetch` from a bundle: before 2.46 that ignores
 * `transfer.fsckObjects`.
 */
async function importPack(gitDir: string, pack: string): Promise<void> {
  const isSmall = (await countObjects(pack)) < UNPACK_LIMIT;
  const args = isSmall ? ["unpack-objects", "-q", "--strict"] : ["index-pack", "--stdin", "--strict"];
  const result = await runHostGit(args, { ...inRepository(gitDir), input: pack });
  if (result.exitCode === 0) return;
  const error = gitError(args, result);
  throw error.code === "internal" ? new SandboxError("tampered", error.message, { cause: error }) : error;
}

/** What the head of a pack says; git itself finds out whether that is true. */
async function countObjects(pack: string): Promise<number> {
  const handle = await open(pack);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(12), 0, 12, 0);
    return bytesRead === 12 ? buffer.readUInt32BE(8) : 0;
  } finally {
    await handle.close();
  }
}

async function checkStory(gitDir: string, commit: string, base: string | undefined): Promise<void> {
  const { stdout } = await runHostGit(["rev-list", "--parents", "--max-count=1", commit, "--"], inRepository(gitDir));
  if (stdout.trim() === [commit, ...(base === undefined ? [] : [base])].join(" ")) return;
  throw new SandboxError("tampered", "The snapshot is not the commit that it should be, on the base of the sandbox");
}

/** The first free number gets the commit; a number is never used twice. */
async function createRef(gitDir: string, sandboxId: string, commit: string): Promise<string> {
  const prefix = `refs/glovebox/${sandboxId}/`;
  const taken = await hostGit(["for-each-ref", "--format=%(refname)", prefix], inRepository(gitDir));
  const numbers = taken.split("\n").map((name) => Number(name.slice(prefix.length)) || 0);
  const id = `${prefix}${Math.max(0, ...numbers) + 1}`;
  await hostGit(["update-ref", "--no-deref", id, commit, ""], inRepository(gitDir));
  return id;
}

async function prepareOwnRepository(gitDir: string): Promise<void> {
  const config = { core: { bare: "true" }, gc: { auto: "0" } };
  await writeGitDirectory(gitDir, { head: "refs/heads/none", config });
}
