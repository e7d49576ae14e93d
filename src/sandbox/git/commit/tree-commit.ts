import { constants } from "node:fs";
import { link, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { SandboxError } from "../../../../contracts/errors.js";
import { removeOwnTree, removeTree } from "../../../machine/remove-tree.js";
import type { FastCommit } from "../fast-commit.js";
import { gitError, type RunGit } from "../host/host-git.js";
import {
  type CommitPlan,
  commitInJail,
  INDEX_OF_BASE,
  type JailedCommit,
  type RunJailedGit,
  snapshotMessage,
} from "../jailed/jailed-commit.js";
import { readCheckoutSettings } from "../repository/checkout-settings.js";
import { copyIfThere, makeScratchDirectory, writeGitDirectory } from "../repository/git-directory.js";
import type { Repository } from "../repository/repository.js";
import { filterSections } from "../repository/repository-settings.js";

/** What `withTreeCommit` needs. */
export interface TreeCommitOptions {
  sandboxId: string;
  /** The running sandbox; what is remembered of it goes when it does. */
  sandbox?: object | undefined;
  /** Path of the store, which is made for this one commit and removed after it. */
  store: string;
  runJailedGit: RunJailedGit;
  /** Whether the store is there, and the jail begun. Default false. */
  isStarted?: boolean | undefined;
  /** Called when the pack was taken out. */
  done?: (() => void) | undefined;
  /** As `CommitPlan.message`. */
  message?: string | undefined;
  /** `index`: one that the host made of the files of the base; it saves hashing those that are as they were. */
  source?: { repository: Repository; baseSha: string; index?: string } | undefined;
  /** Filters of the user's that decide what the files are in the commit. They run in the jail. Default: none, every file is as it is. */
  filters?: readonly string[] | undefined;
  /** Where the jail sees the git directory of the inside, when the commits made there are to come along. */
  inside?: string | undefined;
  /** A descendant of the base in the source that the commit is to be made on. */
  parent?: string | undefined;
  /** Tells which paths can differ from the base, as `CommitPlan.changedPaths`; asked for when the sandbox holds still. */
  changedPaths?: (() => Promise<CommitPlan["changedPaths"]>) | undefined;
  /** As `CommitPlan.withOthers`. */
  withOthers?: boolean | undefined;
  /** What a warning says of the repositories in the tree, after "it is". Default "not in the commit". */
  nestedNote?: string | undefined;
  /** Whether what is made of it is to outlive a power loss. Default false. */
  isDurable?: boolean | undefined;
  /** Bytes that the pack may have. Default 4 GiB. */
  maxBytes?: number | undefined;
  /** Makes the commit without a jail, where that can be done. Asked for when the sandbox holds still. */
  makeFast?: ((message: string) => Promise<FastCommit | undefined>) | undefined;
  /** Holds the sandbox still while its tree is read. Default: does not. */
  frozen?: (<T>(work: () => Promise<T>) => Promise<T>) | undefined;
  /** What else is to be read while the sandbox holds still. */
  beside?: ((made: Pick<JailedCommit, "others">) => Promise<void>) | undefined;
}

const MAX_BYTES = 4 * 1024 ** 3;
/** As many objects as `git fetch` would store one by one. */
const UNPACK_LIMIT = 100;

/**
 * Commits a sandbox's tree in a jail and gives the commit's objects, in a pack that nobody else can write any more.
 *
 * Everything that walks the sandbox's tree runs in the jail, since a nested repository there can make git execute
 * programs. So the store counts as hostile too once git has run: the host takes one pack out of it and never looks at it
 * with git.
 */
export async function withTreeCommit<T>(
  opts: TreeCommitOptions,
  use: (made: JailedCommit, pack: string) => Promise<T>,
  useFast?: (made: FastCommit) => Promise<T>,
): Promise<T> {
  const { store, source, frozen = (work) => work() } = opts;
  const pack = `${store}.pack`;
  let isNeeded = opts.isStarted === true;
  const clear = async (): Promise<void> => {
    if (!isNeeded) return;
    await opts.runJailedGit.end?.();
    await removeOwnTree(store);
  };
  let cleared: Promise<void> | undefined;
  try {
    const { sandboxId, inside, parent, withOthers, message } = opts;
    const made = await frozen(async () => {
      const plain = useFast && (await opts.makeFast?.(message ?? snapshotMessage(sandboxId)));
      if (plain !== undefined) await opts.beside?.({ others: [] });
      if (plain !== undefined) return plain;
      isNeeded = true;
      const listing = opts.changedPaths?.();
      // Nobody waits for it when the store cannot be made.
      listing?.catch(() => undefined);
      if (opts.isStarted !== true) await beginStore(store, opts.runJailedGit);
      await fillStore(store, source?.repository, opts.filters);
      const changedPaths = await listing;
      // To be done before git has run in the jail: then the store is no place for the host to write in.
      const isIndexed = (changedPaths === undefined || withOthers === true) && (await copyIndex(source?.index, store));
      const plan = { sandboxId, message, base: source?.baseSha, isIndexed, inside, parent, changedPaths, withOthers };
      const commit = await commitInJail(opts.runJailedGit, plan);
      await opts.beside?.(commit);
      return commit;
    });
    if ("objects" in made) {
      cleared = clear();
      cleared.catch(() => undefined);
      return await (useFast as NonNullable<typeof useFast>)(made);
    }
    // What it may still do to its store concerns nobody: the copy is what is checked.
    await takeOut(join(store, made.pack), pack, opts.maxBytes ?? MAX_BYTES);
    cleared = clear();
    cleared.catch(() => undefined);
    opts.done?.();
    return await use(made, pack);
  } finally {
    await (cleared ?? clear());
    if (isNeeded) await rm(pack, { force: true });
  }
}

/** Makes an empty store for a jail, which writes files as the user's repository would. */
export async function prepareStore(store: string, repository: Repository | undefined): Promise<void> {
  await beginStore(store);
  await fillStore(store, repository);
}

async function beginStore(store: string, jail?: RunJailedGit): Promise<void> {
  await removeTree(store);
  await makeScratchDirectory(store);
  jail?.begin?.();
}

async function fillStore(
  store: string,
  repository: Repository | undefined,
  filters: readonly string[] = [],
): Promise<void> {
  const settings = repository === undefined ? {} : await readCheckoutSettings(repository);
  // The jail sees other owners and inodes. The time of the last change of any kind, which nobody can set, still counts.
  const core = { bare: "false", checkstat: "minimal", ...settings };
  const own = { core, gc: { auto: "0" }, maintenance: { auto: "false" }, fastimport: { unpacklimit: "0" } };
  const config = { ...own, ...(await filterSections(filters)) };
  await writeGitDirectory(store, { head: "refs/heads/none", config, repository });
}

/** Gives a store the index that the host made, twice; false when there is none. */
async function copyIndex(index: string | undefined, store: string): Promise<boolean> {
  const copy = join(store, INDEX_OF_BASE);
  if (index === undefined || !(await copyIfThere(index, copy))) return false;
  // Git never writes into an index, but puts another in its place.
  await link(copy, join(store, "index"));
  return true;
}

/**
 * Stores the objects of a pack, each one checked. Not by `git fetch` from a bundle: before 2.46 that ignores
 * `transfer.fsckObjects`. Durable ones outlive a power loss, which git does not care for with single objects.
 */
export async function importPack(git: RunGit, pack: string, isDurable = false): Promise<void> {
  const isSmall = (await countObjects(pack)) < UNPACK_LIMIT;
  const args = isSmall ? ["unpack-objects", "-q", "--strict"] : ["index-pack", "--stdin", "--strict"];
  const config = isDurable ? { config: { "core.fsync": "loose-object" } } : {};
  const result = await git(args, { ...config, input: pack, interruptible: true });
  if (result.exitCode === 0) return;
  const error = gitError(args, result);
  throw error.code === "internal" ? new SandboxError("tampered", error.message, { cause: error }) : error;
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
