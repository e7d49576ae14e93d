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
  /** The running sandbox: the key for what is remembered about it. */
  sandbox?: object | undefined;
  /** The path of the jail store, which is made for this commit and removed after it. */
  store: string;
  runJailedGit: RunJailedGit;
  /** Whether the store exists and the jail is started. Default false. */
  isStarted?: boolean | undefined;
  /** Called when the pack is out of the store. */
  done?: (() => void) | undefined;
  /** As `CommitPlan.message`. */
  message?: string | undefined;
  /** `index`: an index of the base's files that the host made, which saves hashing unchanged files. */
  source?: { repository: Repository; baseSha: string; index?: string } | undefined;
  /** The user's filters to run in the jail. Default: none, and every file is committed as it is. */
  filters?: readonly string[] | undefined;
  /** Where the jail sees the sandbox git, if its commits should come along. */
  sandboxGit?: string | undefined;
  /** The parent: a commit of the source that descends from the base. */
  parent?: string | undefined;
  /** Lists the paths that can differ from the base, as `CommitPlan.changedPaths`. Called while the sandbox is frozen. */
  changedPaths?: (() => Promise<CommitPlan["changedPaths"]>) | undefined;
  /** As `CommitPlan.withOthers`. */
  withOthers?: boolean | undefined;
  /** What a warning says about a nested repository, after "is". Default "not in the commit". */
  nestedNote?: string | undefined;
  /** Whether the commit must survive a power loss. Default false. */
  isDurable?: boolean | undefined;
  /** Limit for the pack, in bytes. Default 4 GiB. */
  maxBytes?: number | undefined;
  /** Makes the commit without a jail, if possible. Called while the sandbox is frozen. */
  makeFast?: ((message: string) => Promise<FastCommit | undefined>) | undefined;
  /** Freezes the sandbox while its files are read. Default: doesn't. */
  frozen?: (<T>(work: () => Promise<T>) => Promise<T>) | undefined;
  /** Reads whatever else is needed while the sandbox is frozen. */
  beside?: ((made: Pick<JailedCommit, "others">) => Promise<void>) | undefined;
}

const MAX_BYTES = 4 * 1024 ** 3;

/**
 * Commits the files of a frozen sandbox, and passes the commit to `useFast` if it could be made without git, otherwise to `useJailed`, with a
 * pack of its objects that nobody else can write any more.
 *
 * Git walks the files in a jail only, since a nested repository can make git execute programs. So the store is hostile too once git has run:
 * the host takes one pack out of it and never runs git on it.
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
