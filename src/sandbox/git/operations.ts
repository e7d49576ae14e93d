import { SandboxError } from "../../../contracts/errors.js";
import { snapshotInTime } from "../../ledger.js";
import type { Driver } from "../types.js";
import { closeSpareJail } from "./jailed.js";
import type { LiveTree } from "./live-tree.js";
import { findDefaultBranch, pushBranch } from "./push.js";
import { listChanges, removeSnapshot, restoreSnapshot, saveSnapshot } from "./snapshot.js";

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
  const track = async <T>(work: () => Promise<T>): Promise<T> => {
    const operation = work();
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
      await closeSpareJail(tree);
    },
    snapshot: (signal) => track(() => snapshotInTime(signal, () => saveSnapshot(tree), removeSnapshot)),
    restore: (id) => track(() => restoreSnapshot(tree, id)),
    ...(fork && { fork: (count) => track(() => fork(tree, count)) }),
    ...(tree.base && {
      changes: () => track(() => listChanges(tree)),
      git: {
        pushBranch: (branch, token, more) => track(() => pushBranch(tree, branch, token, more)),
        defaultBranch: () => track(() => findDefaultBranch(tree, opts.token)),
      },
    }),
  };
}
