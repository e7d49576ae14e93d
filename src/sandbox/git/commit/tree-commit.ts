import { rm } from "node:fs/promises";
import { join } from "node:path";
import { removeOwnTree } from "../../../machine/remove-tree.js";
import type { FastCommit } from "../fast-commit.js";
import {
  type CommitPlan,
  commitInJail,
  copyIndex,
  fillStore,
  type JailedCommit,
  makeStore,
  type RunJailedGit,
  snapshotMessage,
  takePackOut,
} from "../jailed.js";
import type { Repository } from "../repository.js";

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
  sandboxGit?: string | undefined;
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

/**
 * Commits a sandbox's files while the sandbox holds still, and gives the commit to one of two functions: `useFast` when it could be made
 * without git, else `useJailed`, with a pack of its objects that nobody else can write any more.
 *
 * Everything else that walks the files runs in a jail, since a nested repository there can make git execute programs. So the store is
 * hostile too once git has run: the host takes one pack out of it and never looks at it with git.
 */
export async function withTreeCommit<T>(
  opts: TreeCommitOptions,
  useJailed: (made: JailedCommit, pack: string) => Promise<T>,
  useFast: (made: FastCommit) => Promise<T>,
): Promise<T> {
  const { store, runJailedGit, frozen = (work) => work() } = opts;
  const pack = `${store}.pack`;
  let hasStore = opts.isStarted === true;
  const removeStore = async (): Promise<void> => {
    if (!hasStore) return;
    await runJailedGit.close?.();
    await removeOwnTree(store);
  };
  let removing: Promise<void> | undefined;
  const startRemoving = (): void => {
    removing = removeStore();
    removing.catch(() => undefined);
  };
  try {
    const made = await frozen(async () => {
      const fast = await opts.makeFast?.(opts.message ?? snapshotMessage(opts.sandboxId));
      if (fast === undefined) hasStore = true;
      const commit = fast ?? (await commitInStore(opts));
      await opts.beside?.("others" in commit ? commit : { others: [] });
      return commit;
    });
    if ("objects" in made) {
      startRemoving();
      return await useFast(made);
    }
    // Whatever the jail still does to its store has no effect: only the copy is checked.
    await takePackOut(join(store, made.pack), pack, opts.maxBytes ?? MAX_BYTES);
    startRemoving();
    opts.done?.();
    return await useJailed(made, pack);
  } finally {
    await (removing ?? removeStore());
    if (hasStore) await rm(pack, { force: true });
  }
}

async function commitInStore(opts: TreeCommitOptions): Promise<JailedCommit> {
  const { store, source, sandboxId, message, sandboxGit, parent, withOthers, runJailedGit } = opts;
  const listing = opts.changedPaths?.();
  // Nobody waits for it when the store cannot be made.
  listing?.catch(() => undefined);
  if (opts.isStarted !== true) await makeStore(store, runJailedGit);
  await fillStore(store, source?.repository, opts.filters);
  const changedPaths = await listing;
  // Before git runs in the jail: after that the host must not write into the store.
  const isIndexed = (changedPaths === undefined || withOthers === true) && (await copyIndex(source?.index, store));
  const plan = { sandboxId, message, base: source?.baseSha, isIndexed, sandboxGit, parent, changedPaths, withOthers };
  return await commitInJail(runJailedGit, plan);
}
