import type { SnapshotRecord } from "../../../contracts/backend.js";
import { SandboxError } from "../../../contracts/errors.js";
import { snapshotInTime } from "../../ledger.js";
import type { Driver } from "../types.js";
import type { LiveTree } from "./live-tree.js";

type TreeWork = typeof import("./tree-work.js");

/** Most sandboxes are never saved or compared, and the code for it is larger than the rest of a start. */
const loadTreeWork = async (): Promise<TreeWork> => await import("./tree-work.js");

/** Removes what a snapshot is made of, other than its record. */
export async function removeSnapshot(record: SnapshotRecord): Promise<void> {
  await (await loadTreeWork()).removeSnapshot(record);
}

/** Removes the snapshots that a sandbox left unfinished. */
export async function removeUnfinishedSnapshots(sandboxId: string, repo: string | undefined): Promise<void> {
  await (await loadTreeWork()).removeUnfinishedSnapshots(sandboxId, repo);
}

/** Gives forks the files of their parent. */
export async function fillForks(
  tree: LiveTree,
  forks: readonly LiveTree[],
  opts: { areForeign: boolean },
): Promise<void> {
  await (await loadTreeWork()).fillForks(tree, forks, opts);
}

/** Gives a fork's branch a name of its own. */
export async function nameForkedBranch(fork: LiveTree): Promise<void> {
  await (await loadTreeWork()).nameForkedBranch(fork);
}

/** The operations of a driver that not every sandbox has. */
export interface TreeOperations extends Pick<Driver, "snapshot" | "restore" | "fork" | "changes" | "git"> {
  /** Resolves once none of them is running. */
  settled(): Promise<void>;
}

/** The operations on the files of a sandbox as a whole. */
export function createOperations(
  tree: LiveTree,
  opts: { fork?: (tree: LiveTree, count: number) => Promise<Driver[]>; token: string | undefined },
): TreeOperations {
  const { fork } = opts;
  const running = new Set<Promise<unknown>>();
  let used: TreeWork | undefined;
  const loadFirst = async (): Promise<TreeWork> => {
    used = await loadTreeWork();
    return used;
  };
  const track = async <T>(start: (work: TreeWork) => Promise<T>): Promise<T> => {
    const operation = used === undefined ? loadFirst().then(start) : start(used);
    running.add(operation);
    try {
      return await operation;
    } catch (error) {
      if (!tree.signal.aborted) throw error;
      throw new SandboxError("closed", "The sandbox was closed meanwhile", { cause: error });
    } finally {
      running.delete(operation);
    }
  };
  return {
    settled: async () => {
      await Promise.allSettled(running);
      await used?.closeSpareJail(tree);
    },
    snapshot: (signal) => track((work) => snapshotInTime(signal, () => work.saveSnapshot(tree), removeSnapshot)),
    restore: (id) => track((work) => work.restoreSnapshot(tree, id)),
    ...(fork && { fork: (count) => track(() => fork(tree, count)) }),
    ...(tree.base && {
      changes: () => track((work) => work.listChanges(tree)),
      git: {
        pushBranch: (branch, token, more) => track((work) => work.pushBranch(tree, branch, token, more)),
        defaultBranch: () => track((work) => work.findDefaultBranch(tree, opts.token)),
      },
    }),
  };
}
