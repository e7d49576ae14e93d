import type { LocalOperations } from "./driver.js";
import { listChanges } from "./list-changes.js";
import type { LiveTree } from "./live-tree.js";
import { restoreSnapshot } from "./restore-snapshot.js";
import { saveSnapshot } from "./save-snapshot.js";

/** What can be done with the files of a sandbox as a whole. */
export function createOperations(tree: LiveTree): LocalOperations {
  return {
    snapshot: () => saveSnapshot(tree),
    restore: (id) => restoreSnapshot(tree, id),
    ...(tree.workspace.base && { changes: () => listChanges(tree) }),
  };
}
